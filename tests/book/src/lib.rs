//! The project's Markdown, as tests look at it.

mod cases;
pub mod code;

/// Rust in the book and in the README that is not a file of a crate.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/errors.md")]
    struct Errors;
    #[doc = include_str!("../../../docs/ops.md")]
    struct Ops;
    #[doc = include_str!("../../../README.md")]
    struct Readme;
}

use mdbook_driver::MDBook;
use mdbook_driver::errors::Result;
use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The workspace's directory.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate is two levels below").to_owned()
}

/// The book's directory.
pub fn book() -> PathBuf {
    root().join("docs")
}

/// Builds the book as HTML into a directory, which is emptied first, with the tables of conformance cases and the READMEs of
/// the products. Links to files of the project that are not in the book then begin with `repository`, where mdBook would
/// look for them next to the book.
pub fn build(to: &Path, repository: &str) -> Result<()> {
    let mut mdbook = MDBook::load(book())?;
    mdbook.config.build.build_dir = to.to_owned();
    mdbook.book.for_each_chapter_mut(|chapter| {
        let product = chapter.path.as_deref().and_then(product_of).map(str::to_owned);
        if let Some(product) = product {
            chapter.content = with_links_of_book(&readme_of(&product), &chapter.content);
            chapter.path = Some(format!("{product}.md").into());
        }
        chapter.content = cases::filled(&chapter.content);
    });
    mdbook.build()?;
    for entry in fs::read_dir(to)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "html") {
            let page = fs::read_to_string(&path)?;
            fs::write(&path, with_links_out(&page, repository))?;
        }
    }
    Ok(())
}

/// Returns the product whose README this path in the summary is.
pub fn product_of(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix("../plugins/")?.strip_suffix("/README.md")
}

/// Returns the path of a product's README.
fn readme_of(product: &str) -> String {
    format!("plugins/{product}/README.md")
}

/// A file of the project with links that are relative to the book.
fn with_links_of_book(path: &str, text: &str) -> String {
    let mut out = text.to_owned();
    for Link { target, .. } in Document::parse(text).links {
        if !target.starts_with('#') {
            out = out.replace(&format!("]({target})"), &format!("]({})", from_book(path, &target)));
        }
    }
    out
}

/// Where a link in a file of the project leads, seen from the book.
fn from_book(file: &str, target: &str) -> String {
    let mut path = Path::new(file).parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(target) {
        if part == ".." {
            path.pop();
        } else {
            path.push(part);
        }
    }
    let path = path.display().to_string();
    path.strip_prefix("docs/").map_or_else(|| format!("../{path}"), str::to_owned)
}

/// A page of HTML with other links to files that are not in the book.
fn with_links_out(page: &str, repository: &str) -> String {
    let mut parts = page.split("href=\"../");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (target, rest) = part.split_once('"').unwrap_or((part, ""));
        let (file, anchor) = target.find('#').map_or((target, ""), |at| target.split_at(at));
        // mdBook takes every Markdown file for a page.
        let file = match file.strip_suffix(".html") {
            Some(name) if !root().join(file).exists() => format!("{name}.md"),
            _ => file.to_owned(),
        };
        // The README of a product is a chapter.
        let product =
            file.strip_prefix("plugins/").and_then(|rest| rest.strip_suffix("/README.md"));
        let link = match product {
            Some(name) => format!("{name}.html"),
            None => format!("{repository}/{file}"),
        };
        out.push_str(&format!("href=\"{link}{anchor}\"{rest}"));
    }
    out
}

/// All Markdown files below a directory, sorted, without what is built or hidden. Symbolic links are left out: what they
/// lead to is found where it is.
pub fn documents(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory of the project") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "node_modules" {
                found.extend(documents(&path));
            }
        } else if name.ends_with(".md") && !path.is_symlink() {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A link or an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it leads.
    pub target: String,
    /// The line that it is in.
    pub line: usize,
}

/// A fenced block of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The info string after the fence: the language, and perhaps more after a comma.
    pub info: String,
    /// The code.
    pub code: String,
    /// The line that the fence is in.
    pub line: usize,
    /// The text of the paragraph in front of it; empty if it is not a paragraph.
    pub paragraph: String,
}

impl Block {
    /// The language.
    pub fn language(&self) -> &str {
        self.info.split(',').next().unwrap_or_default()
    }
}

/// The relevant parts of a Markdown file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Links and images, except for those into the web.
    pub links: Vec<Link>,
    /// What can follow a `#` in a link to the document.
    pub anchors: BTreeSet<String>,
    /// Blocks of code.
    pub blocks: Vec<Block>,
    /// The rows of all tables, with the text of their cells.
    pub rows: Vec<Vec<String>>,
}

impl Document {
    /// Reads Markdown.
    pub fn parse(text: &str) -> Self {
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        let line = |offset: usize| text[..offset].matches('\n').count() + 1;
        let mut document = Self::default();
        let mut taken = BTreeMap::new();
        let (mut heading, mut block) = (None::<String>, None::<Block>);
        let mut cell = None::<String>;
        let (mut paragraph, mut is_paragraph) = (String::new(), false);
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { .. }) => {
                    heading = Some(String::new());
                    paragraph.clear();
                }
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor(&heading.take().unwrap_or_default());
                    let times = taken.entry(anchor.clone()).or_insert(0);
                    document.anchors.insert(match *times {
                        0 => anchor,
                        more => format!("{anchor}-{more}"),
                    });
                    *times += 1;
                }
                Event::Start(Tag::Paragraph) => {
                    paragraph.clear();
                    is_paragraph = true;
                }
                Event::End(TagEnd::Paragraph) => is_paragraph = false,
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                    block = Some(Block {
                        info: info.to_string(),
                        code: String::new(),
                        line: line(range.start),
                        paragraph: std::mem::take(&mut paragraph),
                    });
                }
                Event::End(TagEnd::CodeBlock) => document.blocks.extend(block.take()),
                Event::Start(
                    Tag::Link { link_type, dest_url, .. } | Tag::Image { link_type, dest_url, .. },
                ) => {
                    let is_elsewhere = matches!(link_type, LinkType::Autolink | LinkType::Email)
                        || dest_url.contains("://")
                        || dest_url.starts_with("mailto:");
                    if !is_elsewhere {
                        document
                            .links
                            .push(Link { target: dest_url.to_string(), line: line(range.start) });
                    }
                }
                Event::Text(text) | Event::Code(text) => {
                    let code = block.as_mut().map(|block| &mut block.code);
                    let paragraph = is_paragraph.then_some(&mut paragraph);
                    let into = code.or(heading.as_mut()).or(cell.as_mut()).or(paragraph);
                    if let Some(into) = into {
                        into.push_str(&text);
                    }
                }
                Event::SoftBreak if is_paragraph => paragraph.push(' '),
                Event::Start(Tag::Table(_) | Tag::List(_)) => paragraph.clear(),
                Event::Start(Tag::TableRow | Tag::TableHead) => document.rows.push(Vec::new()),
                Event::Start(Tag::TableCell) => cell = Some(String::new()),
                Event::End(TagEnd::TableCell) => {
                    document.rows.last_mut().expect("a row").extend(cell.take());
                }
                _ => {}
            }
        }
        document
    }

    /// Reads a Markdown file.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path);
        Self::parse(&text.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }
}

/// The anchor of a heading, as mdBook and code hosts make it.
fn anchor(heading: &str) -> String {
    let kept =
        heading.chars().filter(|one| one.is_alphanumeric() || matches!(one, ' ' | '-' | '_'));
    kept.map(|one| if one == ' ' { '-' } else { one }).collect::<String>().to_lowercase()
}

/// Returns the errors in a document's links: one line each.
pub fn broken_links(path: &Path, document: &Document) -> Vec<String> {
    let mut broken = Vec::new();
    for Link { target, line } in &document.links {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let at = match file {
            "" => path.to_owned(),
            file => path.parent().unwrap_or(path).join(file),
        };
        let leads = if !at.exists() {
            Err("there is no such file")
        } else if anchor.is_empty() {
            Ok(())
        } else if at.extension().is_none_or(|extension| extension != "md") {
            Err("only Markdown has anchors")
        } else if Document::read(&at).anchors.contains(anchor) {
            Ok(())
        } else {
            Err("the file has no such heading")
        };
        if let Err(why) = leads {
            broken.push(format!("{}:{line}: `{target}`: {why}", path.display()));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A `b` – c\n\n# Twice\n\n# Twice\n\n[a](b.md#c) and ![d](e.svg), [web](https://f.g)\n\nWords\nhere:\n\n```rust,ignore\nlet x = 1;\n```\n";

    #[test]
    fn a_document_is_read() {
        let document = Document::parse(TEXT);
        let anchors: Vec<_> = document.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["a-b--c", "twice", "twice-1"]);
        let targets: Vec<_> =
            document.links.iter().map(|link| (&*link.target, link.line)).collect();
        assert_eq!(targets, [("b.md#c", 7), ("e.svg", 7)]);
        let [block] = &*document.blocks else { panic!("{document:?}") };
        assert_eq!((block.language(), &*block.code, block.line), ("rust", "let x = 1;\n", 12));
        assert_eq!(block.paragraph, "Words here:");
        let table = Document::parse("| a | `b` c |\n|---|---|\n| d | |\n");
        assert_eq!(table.rows, [vec!["a", "b c"], vec!["d", ""]]);
    }

    #[test]
    fn broken_links_are_found() {
        let here = book().join("introduction.md");
        let broken = |text| broken_links(&here, &Document::parse(text)).len();
        assert_eq!(broken("[a](first-device.md#the-crate) [b](#introduction) [c](flow.svg)"), 0);
        assert_eq!(broken("# x\n[a](first-device.md#the-crates)"), 1);
        assert_eq!(broken("[a](no-such-page.md) ![b](no.svg) [c](flow.svg#x)"), 3);
    }
}
