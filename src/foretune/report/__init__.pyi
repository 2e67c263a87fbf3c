from foretune.report.page import write_page as write_page
from foretune.report.story import Story as Story
from foretune.report.wording import (
    count_text as count_text,
    duration_text as duration_text,
    number_text as number_text,
)
