//! The book builds, and its references resolve.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tf_plugin_book_tests::{Document, book, broken_links, build, documents, product_of, root};

/// The pages of the book.
fn pages() -> Vec<PathBuf> {
    let mut pages = documents(&book());
    pages.retain(|page| !page.ends_with("SUMMARY.md"));
    pages
}

#[test]
fn every_link_leads_somewhere() {
    let all = documents(&root());
    assert!(all.contains(&root().join("README.md")), "{all:?}");
    let broken: Vec<_> =
        all.iter().flat_map(|path| broken_links(path, &Document::read(path))).collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// The products: the crates in `plugins` with a README.
fn products() -> Vec<String> {
    let plugins = fs::read_dir(root().join("plugins")).expect("the products");
    let plugins = plugins.map(|entry| entry.expect("an entry").path());
    let with_readme = plugins.filter(|path| path.join("README.md").exists());
    let name = |path: PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let mut products: Vec<_> = with_readme.map(name).collect();
    products.sort();
    products
}

#[test]
fn every_page_and_product_is_in_the_summary_once() {
    let summary = Document::read(&book().join("SUMMARY.md"));
    let targets = || summary.links.iter().map(|link| Path::new(&link.target));
    let mut listed: Vec<_> = targets().filter(|target| product_of(target).is_none()).collect();
    listed.sort();
    let pages: Vec<_> = pages();
    let pages: Vec<_> =
        pages.iter().map(|page| page.strip_prefix(book()).expect("a page")).collect();
    assert_eq!(listed, pages);
    let mut listed: Vec<_> = targets().filter_map(product_of).collect();
    listed.sort();
    assert_eq!(listed, products());
}

/// tensorflow-io's variables in the page for its users are those that the plugin's settings name.
#[test]
fn the_variables_of_tensorflow_io_are_those_of_the_settings() {
    let settings = Document::read(&root().join("plugins/s3/CONFIGURATION.md")).rows;
    let page = Document::read(&book().join("migrating-tensorflow-io.md")).rows;
    let mut told = BTreeSet::new();
    for row in page.iter().filter(|row| row[0].starts_with("S3_") && row[1] != "none") {
        for key in row[1].split(", ") {
            let setting = settings.iter().find(|setting| setting[0] == key);
            let variables = &setting.unwrap_or_else(|| panic!("there is no setting {key}"))[1];
            for variable in row[0].split(", ").chain(row[2].split(", ")) {
                let is_url = variable.starts_with("a URL");
                assert!(is_url || variables.contains(variable), "{key}: {variable}: {variables}");
                told.insert(variable.to_owned());
            }
        }
    }
    let understood = settings.iter().flat_map(|setting| setting[1].split(", "));
    for variable in understood.filter(|variable| variable.starts_with("S3_")) {
        assert!(told.contains(variable), "{variable} is not on the page");
    }
}

/// The targets of `href="…"` and `src="…"` in a page that are files of the book.
fn references(html: &str) -> BTreeSet<String> {
    let mut targets = BTreeSet::new();
    for attribute in ["href=\"", "src=\""] {
        for rest in html.split(attribute).skip(1) {
            let target = rest.split(['"', '#']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains(':') {
                targets.insert(target.to_owned());
            }
        }
    }
    targets
}

#[test]
fn the_book_builds_and_hangs_together() {
    let built = tempfile::tempdir().expect("a scratch directory");
    build(built.path(), &root().display().to_string()).expect("the book builds");
    let pages = pages();
    let pages = pages.iter().map(|page| page.file_stem().expect("a name").to_string_lossy());
    for page in pages.chain(products().iter().map(Into::into)) {
        let html = built.path().join(&*page).with_extension("html");
        let text = fs::read_to_string(&html).unwrap_or_else(|_| panic!("{}", html.display()));
        let references = references(&text);
        assert!(references.len() > 10, "{references:?}");
        for target in references {
            assert!(built.path().join(&target).exists(), "{}: `{target}`", html.display());
        }
    }
    // The tables of cases are not in the repository: they come from the cases' lists.
    for (page, part) in [
        ("conformance", "<td><code>new_random_access_file_of_missing</code></td>"),
        ("conformance", "<td><code>OpenCreates</code></td>"),
        ("device-conformance", "<td><code>every_callback</code></td>"),
        ("device-conformance", "<td>the vendor is an empty text</td>"),
        ("tensorflow-conformance", "<td><code>python_write_file_and_read_file</code></td>"),
        ("tensorflow-c-conformance", "<td><code>c_write_and_read</code></td>"),
        // A link out of the book keeps its anchor.
        ("inside", "/ARCHITECTURE.md#where-unsafe-code-is\""),
        // A product's README is a chapter. Links in it and links to it stay in the book.
        ("s3", "href=\"s3-benchmarks.html\""),
        ("s3", "/plugins/s3/CONFIGURATION.md\""),
        ("troubleshooting", "href=\"s3.html#troubleshooting\""),
    ] {
        let html =
            fs::read_to_string(built.path().join(page).with_extension("html")).expect("built");
        assert!(html.contains(part), "{page} lacks {part}");
        assert!(!html.contains("&lt;!-- cases") && !html.contains("<!-- cases"), "{page}");
    }
    let index = fs::read_dir(built.path()).expect("built").find_map(|entry| {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        name.starts_with("searchindex").then(|| fs::read_to_string(&path).expect("an index"))
    });
    assert!(index.expect("the book has a search index").contains("first-filesystem.html"));
}
