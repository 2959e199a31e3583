//! The section of a system prompt that tells a model of the tools.

use std::fmt::Write as _;
use std::time::Duration;

use cellblock_protocol::text::counted;

use super::Profile;
use super::args::{DEFAULT_TIMEOUT, MAX_CONTENT};
use super::exec::{FILES, STREAM_BYTES};
use super::tools::{EDIT, EXEC, PATCH, WRITE};
use crate::session::DatasetMount;

/// Columns of a dataset that are named with their types.
const COLUMNS: usize = 40;
/// Datasets that are described; the others are named.
const DESCRIBED: usize = 20;
/// Characters of a column's name.
const NAME: usize = 80;

/// A script as the profile for Polars asks for it.
const POLARS_EXAMPLE: &str = "\n**EXAMPLE**\n```python
import polars as pl
import matplotlib
matplotlib.use('Agg')
import matplotlib.pyplot as plt
from sklearn.cluster import KMeans

df = pl.read_csv('/tmp/data/sales.csv')
X = df.select(['price', 'count']).to_numpy()
labels = KMeans(n_clusters=3, random_state=42).fit_predict(X)
df = df.with_columns(pl.Series('cluster', labels))
df.write_csv('/tmp/output/clustered.csv')

plt.figure(figsize=(10, 6))
plt.scatter(X[:, 0], X[:, 1], c=labels, cmap='viridis')
plt.xlabel('Price')
plt.ylabel('Count')
plt.title('Clusters of sales')
plt.savefig('/tmp/output/plot.png', dpi=150, bbox_inches='tight')
plt.close()
print(df.group_by('cluster').len().sort('cluster'))
```\n";

/// Description of datasets in a prompt.
pub(super) enum DatasetSection<'a> {
    /// A session's.
    Mounted(&'a [DatasetMount]),
    /// Datasets that every session will have, by name.
    Promised(&'a [String]),
}

pub(super) fn prompt(profile: Profile, longest: Duration, datasets: &DatasetSection<'_>) -> String {
    let (usual, maximum) = (longest.min(Duration::from_secs(DEFAULT_TIMEOUT)), longest);
    let mut text = format!(
        "## ADVANCED ANALYSIS (sandboxed code execution)\n\n\
         For analysis beyond queries (clustering, machine learning, statistics, visualization).\n\n\
         **TOOLS**\n\
         - `{WRITE}`: create a script or another file in the sandbox\n\
         - `{EDIT}`: change a file by replacing one exact piece of text, which must be in it once\n\
         - `{PATCH}`: change several places or files in one step, or none of them\n\
         - `{EXEC}`: run a command in the sandbox, such as `[\"python\", \"/tmp/analysis.py\"]`; \
         read files with `head`, `cat`, `grep`, `sed -n`, `wc -l`, list them with `ls -lh`\n\n\
         **WORKFLOW**\n\
         1. Write a script: `{WRITE}`\n\
         2. Run it: `{EXEC}`\n\
         3. If it fails: read stderr, change the script with `{EDIT}`, run it again. \
         If an edit fails, read the file first and include more context.\n\n\
         **DATA**\n"
    );
    list(&mut text, datasets);
    text.push_str(match profile {
        Profile::Default => "- Read them with pandas or Polars, for example `pd.read_csv(path)`.\n",
        Profile::Polars => "- MUST use Polars: `import polars as pl`, `pl.read_csv(path)`.\n",
    });
    text.push_str(
        "- Save results below `/tmp/output/`, for example `/tmp/output/result.csv` and \
         `/tmp/output/plot.png`.\n\
         - Plots: `matplotlib.use('Agg')`, then `plt.savefig('/tmp/output/plot.png', dpi=150, \
         bbox_inches='tight')`.\n\n\
         **CONSTRAINTS**\n",
    );
    let _ = write!(
        text,
        "- Time: {} s, up to {} s with `timeout`; then a command is killed with all that it has started\n\
         - No network: nothing can be downloaded, and `pip install` does nothing; name packages that the \
         image lacks in `requirements` of `{EXEC}`\n\
         - Files: below /tmp/ or /workspace/ only; /tmp/data/ is read-only; at most {MAX_CONTENT} bytes \
         per written file\n\
         - Output: {} KiB of each stream; of more the middle is left out, and a line there says which \
         file has all of it\n\
         - Results: at most {FILES} files of /tmp/output/ are handed over per command\n\
         - Files stay from call to call; variables do not: each command is a new process, and none goes \
         on when it has ended\n",
        usual.as_secs_f64(),
        maximum.as_secs_f64(),
        STREAM_BYTES / 1024
    );
    if profile == Profile::Polars {
        text.push_str(
            "- NO PANDAS: use Polars; also available: numpy, matplotlib, seaborn and scikit-learn\n",
        );
        text.push_str(POLARS_EXAMPLE);
    }
    text
}

fn list(text: &mut String, datasets: &DatasetSection<'_>) {
    let datasets = match datasets {
        DatasetSection::Mounted(datasets) => *datasets,
        DatasetSection::Promised([]) => &[],
        DatasetSection::Promised(names) => {
            let _ = writeln!(
                text,
                "- Every session has these datasets in `/tmp/data/` (read-only): {}.",
                names.join(", ")
            );
            return;
        }
    };
    if datasets.is_empty() {
        text.push_str("- There are no datasets yet. Those that come appear at `/tmp/data/{name}.csv`.\n");
        return;
    }
    text.push_str("- Datasets (read-only):\n");
    for (index, dataset) in datasets.iter().enumerate() {
        let _ = write!(text, "  - `{}`", dataset.path);
        if index < DESCRIBED {
            describe(text, dataset);
        }
        text.push('\n');
    }
}

fn describe(text: &mut String, dataset: &DatasetMount) {
    let shape = &dataset.shape;
    if let Some(rows) = shape.rows {
        let about = if shape.about { "about " } else { "" };
        let _ = write!(
            text,
            " — {about}{} × {}",
            counted(rows, "row"),
            counted(shape.columns.len(), "column")
        );
    } else if !shape.columns.is_empty() {
        let _ = write!(text, " — {}", counted(shape.columns.len(), "column"));
    } else {
        let _ = write!(text, " — {}", counted(dataset.bytes, "byte"));
        return;
    }
    if let Some(separator) = shape.separator {
        let _ = write!(text, " separated by {separator:?}");
    }
    for (index, column) in shape.columns.iter().take(COLUMNS).enumerate() {
        // A header is data: it must not end the line and begin another.
        let name: String = column
            .name
            .chars()
            .take(NAME)
            .flat_map(char::escape_debug)
            .collect();
        let separator = if index == 0 { ": " } else { ", " };
        let _ = write!(text, "{separator}{name} ({})", column.dtype);
    }
    if shape.columns.len() > COLUMNS {
        let _ = write!(text, ", and {} more", shape.columns.len() - COLUMNS);
    }
}
