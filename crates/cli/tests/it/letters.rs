//! Letters, packages and pictures of the default image, as a cell finds them.

use std::fs;

use anyhow::{Result, ensure};
use cellblock_testkit::Cli;

use crate::support::{BUILD_LIMIT, answer};

#[test]
fn letters_of_many_scripts_are_drawn_without_warnings() -> Result<()> {
    let code = "plt.title('東京 हिन्दी عربي 한국어 中文 ไทย ✓ ☀'); plt.plot([1]); plt.show()\n\
        plt.rcParams['font.sans-serif'] = ['SimHei']; plt.title('中文'); plt.plot([1, -2]); plt.show()\n\
        import seaborn as sns; sns.set_theme(); plt.title('東京'); plt.plot([1]); plt.show()\n\
        from PIL import ImageFont\n\
        print(ImageFont.truetype('NotoSansCJK-Regular.ttc', 20).getname())";
    let run = Cli::new(["run", "--json", "-c", code]).limit(BUILD_LIMIT).run()?;
    let (code, report) = answer(&run)?;
    ensure!(code == 0, "{report:#}");
    assert_eq!(
        report["stdout"], "('Noto Sans CJK JP', 'Regular')\n",
        "{report:#}"
    );
    assert_eq!(report["stderr"], "", "{report:#}");
    assert_eq!(report["outputs"].as_array().map(Vec::len), Some(3));
    Ok(())
}

#[test]
fn packages_that_generated_code_imports_are_there() -> Result<()> {
    let code = "import bs4, docx, lxml.html, networkx, plotly.express, python_calamine, reportlab.platypus\n\
        import sympy, tqdm, xlrd, yaml\n\
        print(pd.DataFrame({'a': [1]}).to_markdown(), pd.get_option('io.excel.ods.reader'))";
    let run = Cli::new(["run", "--json", "-c", code]).limit(BUILD_LIMIT).run()?;
    let (code, report) = answer(&run)?;
    ensure!(code == 0, "{report:#}");
    assert_eq!(
        report["stdout"], "|    |   a |\n|---:|----:|\n|  0 |   1 | calamine\n",
        "{report:#}"
    );
    Ok(())
}

#[test]
fn a_figure_of_plotly_has_an_approximate_picture_next_to_its_data() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let code = "import plotly.express as px; px.line(x=[1,2],y=[3,4])";
    let run = Cli::new(["run", "-c", code])
        .folder(folder.path())
        .limit(BUILD_LIMIT)
        .run()?;
    ensure!(run.code() == 0, "{}{}", run.stdout, run.stderr);
    assert!(
        run.stdout
            .contains("Plotly figure (approximate picture, drawn from its data by matplotlib)"),
        "{}",
        run.stdout
    );
    let saved = folder.path().join("cellblock-out");
    assert!(fs::read(saved.join("value_1.png"))?.starts_with(b"\x89PNG"));
    assert!(fs::read_to_string(saved.join("value_1.plotly.json"))?.contains("\"type\": \"scatter\""));
    assert!(saved.join("value_1.html").exists());
    Ok(())
}
