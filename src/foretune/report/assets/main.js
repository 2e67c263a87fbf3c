// Everything begins here, and again whenever colours or paper change.

const parts = { "course-plot": drawCourse, "trials-table": drawTable, "front-plot": drawFront, slices: drawSlices, "map-plot": drawMap, ...optional };
for (const [key, draw] of Object.entries(parts)) {
  const host = document.getElementById(key);
  if (host) draw(host);
}

const repaintAll = () => pictures.forEach((paint) => paint());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaintAll);
const onPaper = (printing) => () => {
  document.documentElement.classList.toggle("printing", printing); // paper is white
  repaintAll();
};
addEventListener("beforeprint", onPaper(true));
addEventListener("afterprint", onPaper(false));

// Two frames later the first picture is on the screen.
requestAnimationFrame(() => requestAnimationFrame(() => {
  performance.mark("foretune-ready");
  document.documentElement.dataset.ready = Math.round(performance.now());
}));
