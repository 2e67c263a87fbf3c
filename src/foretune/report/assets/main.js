// Everything begins here, and again whenever colours or paper change.

function repaintAll() {
  for (const paint of pictures) paint();
}

drawCourse();
drawTable();
drawFront();
drawSlices();
drawMap();

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaintAll);
addEventListener("beforeprint", () => {
  document.documentElement.classList.add("printing"); // paper is white
  repaintAll();
});
addEventListener("afterprint", () => {
  document.documentElement.classList.remove("printing");
  repaintAll();
});
// Two frames later the first picture is on the screen.
requestAnimationFrame(() => requestAnimationFrame(() => {
  performance.mark("foretune-ready");
  document.documentElement.dataset.ready = Math.round(performance.now());
}));
