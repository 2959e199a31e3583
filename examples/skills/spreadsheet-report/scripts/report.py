"""Makes a workbook with a data sheet, a summary of formulas and a chart from a CSV file."""

import argparse
import csv
import json
import math
from datetime import date

from openpyxl import Workbook
from openpyxl.chart import BarChart, Reference
from openpyxl.styles import Font, PatternFill
from openpyxl.utils import get_column_letter

HEADER = PatternFill("solid", fgColor="1F4E78")
WIDEST = 60
NO_GROUP = "(none)"


def parsed(text):
    """Returns a cell's value: a number, a date, or the text itself."""
    for convert in (int, float, date.fromisoformat):
        try:
            value = convert(text)
        except ValueError:
            continue
        # A cell cannot have `nan` or `inf`.
        return text if isinstance(value, float) and not math.isfinite(value) else value
    return text or None


def append(sheet, values):
    """Adds a row of a table, in which a text that begins with `=` is not a formula."""
    sheet.append(values)
    for cell in sheet[sheet.max_row]:
        if cell.data_type == "f":
            cell.data_type = "s"


def read(path):
    """Returns the header and the rows of a CSV file."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = list(csv.reader(file))
    if len(rows) < 2:
        raise SystemExit(f"{path}: there are no rows below the header")
    header, *rows = rows
    rows = [row + [""] * (len(header) - len(row)) for row in rows if any(row)]
    return header, [[parsed(cell) for cell in row] for row in rows]


def dress(sheet, columns):
    """Formats the header of a sheet, and sets the widths of its columns."""
    for cell in sheet[1]:
        cell.font = Font(bold=True, color="FFFFFF")
        cell.fill = HEADER
    for number in range(1, columns + 1):
        column = sheet[get_column_letter(number)]
        width = max((len(str(cell.value)) for cell in column if cell.value is not None), default=0)
        sheet.column_dimensions[get_column_letter(number)].width = min(width, WIDEST) + 2
    sheet.freeze_panes = "A2"


def fill(sheet, header, rows):
    """Writes the table."""
    append(sheet, header)
    for row in rows:
        append(sheet, row)
    for row in sheet.iter_rows(min_row=2):
        for cell in row:
            if isinstance(cell.value, float):
                cell.number_format = "#,##0.00"
    dress(sheet, len(header))
    sheet.auto_filter.ref = sheet.dimensions


def summarize(sheet, data, groups, columns, title):
    """Writes one row of formulas per group, a row of totals, and a chart."""
    keys, values = columns
    last = data.max_row
    where = f"Data!${keys}$2:${keys}${last}"
    what = f"Data!${values}$2:${values}${last}"
    sheet.append(["Group", "Count", "Total", "Mean"])
    for number, group in enumerate(groups, start=2):
        total = f"=SUMIFS({what},{where},A{number})"
        append(sheet, [group])
        sheet.cell(number, 2, f"=COUNTIFS({where},A{number})")
        sheet.cell(number, 3, total)
        sheet.cell(number, 4, f"=C{number}/B{number}")
    end = len(groups) + 1
    sheet.append(["Total", f"=SUM(B2:B{end})", f"=SUM(C2:C{end})", f"=C{end + 1}/B{end + 1}"])
    for cell in sheet[end + 1]:
        cell.font = Font(bold=True)
    for row in sheet.iter_rows(min_row=2, min_col=3, max_col=4):
        for cell in row:
            cell.number_format = "#,##0.00"
    dress(sheet, 4)
    chart = BarChart()
    chart.title = title
    chart.legend = None
    chart.add_data(Reference(sheet, min_col=3, min_row=2, max_row=end))
    chart.set_categories(Reference(sheet, min_col=1, min_row=2, max_row=end))
    sheet.add_chart(chart, "F2")


def main():
    """Reads the arguments, writes the workbook, and prints the totals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table")
    parser.add_argument("workbook")
    parser.add_argument("--group", required=True)
    parser.add_argument("--value", required=True)
    parser.add_argument("--title", default="Summary")
    options = parser.parse_args()
    header, rows = read(options.table)
    for name in (options.group, options.value):
        if name not in header:
            raise SystemExit(f"there is no column {name!r}; there are {', '.join(header)}")
    key, value = header.index(options.group), header.index(options.value)
    totals = {}
    for row in rows:
        # The formulas cannot refer to an empty group.
        row[key] = NO_GROUP if row[key] is None else row[key]
        if not isinstance(row[value], int | float):
            raise SystemExit(f"{options.value!r} has {row[value]!r}, which is not a number")
        totals[row[key]] = totals.get(row[key], 0) + row[value]
    # Groups may be numbers, dates and texts, which have no common order.
    groups = sorted(totals, key=str)
    workbook = Workbook()
    summary = workbook.active
    summary.title = "Summary"
    data = workbook.create_sheet("Data")
    fill(data, header, rows)
    letters = (get_column_letter(key + 1), get_column_letter(value + 1))
    summarize(summary, data, groups, letters, options.title)
    workbook.save(options.workbook)
    print(json.dumps({str(group): totals[group] for group in groups}))


if __name__ == "__main__":
    main()
