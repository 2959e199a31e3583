"""Lists the fields of a PDF form as JSON, and fills them."""

import argparse
import json

from pypdf import PdfReader, PdfWriter

KINDS = {"/Tx": "text", "/Btn": "check box", "/Ch": "choice", "/Sig": "signature"}


def states(field):
    """Returns the names of a check box's states except the empty one."""
    return [str(state) for state in field.get("/_States_", []) if state != "/Off"]


def described(field):
    """Returns what a model needs to know of a field."""
    kind = KINDS.get(field.get("/FT"), "unknown")
    value = field.get("/V")
    if kind == "check box":
        value = value not in (None, "", "/Off")
    found = {"kind": kind, "value": value if value is None or isinstance(value, bool) else str(value)}
    if kind == "choice":
        found["choices"] = [str(choice) for choice in field.get("/_States_", field.get("/Opt", []))]
    return found


def fields(path):
    """Returns the fields of a form by their names."""
    found = PdfReader(path).get_fields() or {}
    return {name: field for name, field in found.items() if field.get("/FT")}


def raw(name, field, value):
    """Returns a value as the form stores it."""
    about = described(field)
    if about["kind"] == "check box":
        if not isinstance(value, bool):
            raise SystemExit(f"{name!r} is a check box: give true or false, not {value!r}")
        on = states(field)
        return (on[0] if on else "/Yes") if value else "/Off"
    if about["kind"] == "choice" and str(value) not in about["choices"]:
        raise SystemExit(f"{name!r} cannot be {value!r}; its choices are {', '.join(about['choices'])}")
    if about["kind"] == "signature":
        raise SystemExit(f"{name!r} is a signature, which only its signer can give")
    return str(value)


def fill(source, values, target):
    """Writes a filled copy of a form, and checks that every value is in it."""
    known = fields(source)
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise SystemExit(f"there are no fields {', '.join(unknown)}; there are {', '.join(known)}")
    wanted = {name: raw(name, known[name], value) for name, value in values.items()}
    writer = PdfWriter(clone_from=source)
    for page in writer.pages:
        writer.update_page_form_field_values(page, wanted, auto_regenerate=False)
    writer.set_need_appearances_writer(True)
    writer.write(target)
    for name, value in wanted.items():
        arrived = fields(target)[name].get("/V")
        if str(arrived) != value:
            raise SystemExit(f"{name!r} is {arrived!r} in the result, not {value!r}")


def main():
    """Reads the arguments, and lists or fills."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list").add_argument("form")
    filling = commands.add_parser("fill")
    for name in ("form", "values", "filled"):
        filling.add_argument(name)
    options = parser.parse_args()
    if options.command == "fill":
        with open(options.values, encoding="utf-8") as file:
            fill(options.form, json.load(file), options.filled)
    listed = fields(options.filled if options.command == "fill" else options.form)
    print(json.dumps({name: described(field) for name, field in listed.items()}, ensure_ascii=False))


if __name__ == "__main__":
    main()
