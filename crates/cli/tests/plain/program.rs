//! The programs that people type first.

/// A result of a program, which is shown once.
#[derive(Clone, Debug)]
pub(crate) enum ProgramResult {
    /// A chart, and a picture saved by the code itself.
    Chart { saved: bool },
    /// A table with a column of this name.
    Table(&'static str),
    /// An exception of this type.
    Exception(&'static str),
}

/// A program of a few lines.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) code: String,
    pub(crate) expected: ProgramResult,
}

/// A way in which code gets at a library of charts.
struct Import {
    name: &'static str,
    before: &'static str,
    /// Draws, and gives what the library gives.
    draw: &'static str,
    /// The module whose functions show and save.
    pyplot: &'static str,
}

const IMPORTS: [Import; 5] = [
    Import {
        name: "import",
        before: "import matplotlib.pyplot as plt\n",
        draw: "plt.plot([1, 2])",
        pyplot: "plt",
    },
    Import {
        name: "prelude",
        before: "",
        draw: "plt.plot([1, 2])",
        pyplot: "plt",
    },
    Import {
        name: "from import",
        before: "from matplotlib import pyplot\n",
        draw: "pyplot.plot([1, 2])",
        pyplot: "pyplot",
    },
    Import {
        name: "pandas",
        before: "import pandas as pd\nimport matplotlib.pyplot as plt\n",
        draw: "pd.Series([1, 2]).plot()",
        pyplot: "plt",
    },
    Import {
        name: "seaborn",
        before: "import seaborn as sns\nimport matplotlib.pyplot as plt\n",
        draw: "sns.lineplot(x=[0, 1], y=[1, 2])",
        pyplot: "plt",
    },
];

/// All programs.
pub(crate) fn programs() -> impl Iterator<Item = Program> {
    IMPORTS.iter().flat_map(charts).chain(others())
}

fn charts(import: &'static Import) -> impl Iterator<Item = Program> {
    let Import {
        name,
        before,
        draw,
        pyplot,
    } = import;
    let ways = [
        ("last value", format!("{before}{draw}\n{pyplot}.gcf()"), false),
        ("show", format!("{before}{draw}\n{pyplot}.show()"), false),
        // Nothing but the drawing: not even the import of the library that it does not name.
        ("left open", format!("{}{draw}", first_line(before)), false),
        (
            "savefig",
            format!("{before}{draw}\n{pyplot}.savefig(\"saved.png\")"),
            true,
        ),
    ];
    ways.into_iter().map(move |(way, code, saved)| Program {
        name: format!("chart, {name}, {way}"),
        code,
        expected: ProgramResult::Chart { saved },
    })
}

fn first_line(text: &str) -> &str {
    text.split_inclusive('\n').next().unwrap_or_default()
}

fn others() -> impl Iterator<Item = Program> {
    let table = ProgramResult::Table("units");
    let programs = [
        (
            "table, import, last value",
            "import pandas as pd\npd.DataFrame({\"units\": [1, 2]})",
            table.clone(),
        ),
        (
            "table, prelude, last value",
            "pd.DataFrame({\"units\": [1, 2]})",
            table.clone(),
        ),
        (
            "table, import, display",
            "from pandas import DataFrame\ndisplay(DataFrame({\"units\": [1, 2]}))",
            table.clone(),
        ),
        (
            "table, assigned before",
            "import pandas\ntable = pandas.DataFrame({\"units\": [1, 2]})\ntable",
            table,
        ),
        (
            "exception, raised",
            "1 / 0",
            ProgramResult::Exception("ZeroDivisionError"),
        ),
        (
            "exception, after a chart is closed",
            "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.close()\n[][1]",
            ProgramResult::Exception("IndexError"),
        ),
    ];
    programs.into_iter().map(|(name, code, expected)| Program {
        name: name.to_owned(),
        code: code.to_owned(),
        expected,
    })
}
