"""Makes a deck of slides with bullets and editable charts from an outline in JSON."""

import argparse
import json

from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

CHARTS = {
    "column": XL_CHART_TYPE.COLUMN_CLUSTERED,
    "bar": XL_CHART_TYPE.BAR_CLUSTERED,
    "line": XL_CHART_TYPE.LINE,
    "pie": XL_CHART_TYPE.PIE,
}
MOST_BULLETS = 4
TITLE, BULLETS, TITLE_ONLY = 0, 1, 5


def chart(slide, wanted):
    """Draws a chart that PowerPoint can edit."""
    kind = CHARTS.get(wanted["type"])
    if kind is None:
        raise SystemExit(f"there is no chart {wanted['type']!r}; there are {', '.join(CHARTS)}")
    data = CategoryChartData()
    data.categories = wanted["categories"]
    for name, values in wanted["series"].items():
        if len(values) != len(wanted["categories"]):
            raise SystemExit(f"the series {name!r} has {len(values)} values, not one per category")
        data.add_series(name, values)
    place = (Inches(1), Inches(1.6), Inches(8), Inches(5))
    drawn = slide.shapes.add_chart(kind, *place, data).chart
    drawn.has_legend = len(wanted["series"]) > 1 or wanted["type"] == "pie"


def bullets(slide, texts):
    """Writes bullets, one paragraph each."""
    if len(texts) > MOST_BULLETS:
        title = slide.shapes.title.text
        raise SystemExit(f"{title!r} has {len(texts)} bullets, and {MOST_BULLETS} fit; split the slide")
    frame = slide.placeholders[1].text_frame
    frame.text = texts[0]
    for text in texts[1:]:
        frame.add_paragraph().text = text


def build(outline):
    """Returns the deck of an outline."""
    deck = Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[TITLE])
    first.shapes.title.text = outline["title"]
    first.placeholders[1].text = outline.get("subtitle", "")
    for wanted in outline["slides"]:
        layout = BULLETS if wanted.get("bullets") else TITLE_ONLY
        slide = deck.slides.add_slide(deck.slide_layouts[layout])
        slide.shapes.title.text = wanted["title"]
        if wanted.get("bullets"):
            bullets(slide, wanted["bullets"])
        if wanted.get("chart"):
            chart(slide, wanted["chart"])
        if wanted.get("notes"):
            slide.notes_slide.notes_text_frame.text = wanted["notes"]
    return deck


def main():
    """Reads the arguments, writes the deck, and prints the titles of its slides."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("outline")
    parser.add_argument("deck")
    options = parser.parse_args()
    with open(options.outline, encoding="utf-8") as file:
        deck = build(json.load(file))
    deck.save(options.deck)
    for slide in deck.slides:
        print(slide.shapes.title.text)


if __name__ == "__main__":
    main()
