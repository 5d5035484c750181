//! Parses the XML of stores: listings and errors. Names in it are exact, so no space around a text is dropped.
//! Feature `xml`.

use percent_encoding::percent_decode_str;
pub use quick_xml::escape::escape;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

/// The deepest nesting of elements. Stores write 6; each level costs time for all below it.
const DEEPEST: usize = 16;

/// Calls `on` for each element when it ends, with its name after those of its ancestors. It gets the text of an element
/// without children, and `None` for others.
///
/// # Errors
/// If it is not XML, ends early, or is deeper than anything that a store writes.
pub fn elements(xml: &[u8], mut on: impl FnMut(&[&str], Option<String>)) -> Result<(), String> {
    let mut on = |path: &[String], text| {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        on(&path, text);
    };
    let broken = |error: &dyn std::fmt::Display| format!("its XML is broken: {error}");
    let mut reader = Reader::from_reader(xml);
    let mut path: Vec<String> = Vec::new();
    let mut text = String::new();
    let (mut is_leaf, mut is_encoded) = (false, false);
    loop {
        match reader.read_event().map_err(|error| broken(&error))? {
            Event::Start(_) if path.len() >= DEEPEST => {
                return Err(format!("its XML has more than {DEEPEST} levels"));
            }
            Event::Start(start) => {
                (is_leaf, is_encoded) = (true, encoded(&start));
                path.push(String::from_utf8_lossy(start.local_name().as_ref()).into_owned());
                text.clear();
            }
            Event::Empty(start) => {
                path.push(String::from_utf8_lossy(start.local_name().as_ref()).into_owned());
                on(&path, Some(String::new()));
                path.pop();
                is_leaf = false;
            }
            Event::Text(part) => {
                text.push_str(&part.xml_content(XmlVersion::Implicit1_0).map_err(|e| broken(&e))?);
            }
            Event::CData(part) => text.push_str(&part.decode().map_err(|error| broken(&error))?),
            Event::GeneralRef(name) => {
                let unknown = || "its XML has an unknown entity".to_owned();
                match name.resolve_char_ref().map_err(|error| broken(&error))? {
                    Some(character) => text.push(character),
                    None => {
                        let name = name.decode().map_err(|error| broken(&error))?;
                        text.push_str(resolve_xml_entity(&name).ok_or_else(unknown)?);
                    }
                }
            }
            Event::End(_) => {
                let decode = |text: String| match is_encoded {
                    true => percent_decode_str(&text).decode_utf8_lossy().into_owned(),
                    false => text,
                };
                on(&path, is_leaf.then(|| decode(std::mem::take(&mut text))));
                is_leaf = false;
                path.pop();
            }
            Event::Eof if path.is_empty() => return Ok(()),
            Event::Eof => return Err("its XML ends early".to_owned()),
            _ => {}
        }
    }
}

/// Returns whether the text is percent-encoded, as Azure says of names with characters that XML cannot hold.
fn encoded(start: &BytesStart<'_>) -> bool {
    start.attributes().flatten().any(|attribute| {
        attribute.key.as_ref() == b"Encoded" && attribute.value.eq_ignore_ascii_case(b"true")
    })
}

/// Returns the text of the first element of this name in an error document, of which the end may be missing.
pub fn error_field(xml: &[u8], name: &str) -> Option<String> {
    let mut found = None;
    let _ = elements(xml, |path, text| {
        if found.is_none() && path.last() == Some(&name) {
            found = text;
        }
    });
    found.filter(|text| !text.is_empty())
}

/// Returns the message of an error document.
pub fn error_message(xml: &[u8]) -> Option<String> {
    // Further lines have the request's number and time.
    let message = error_field(xml, "Message");
    message.map(|text| text.lines().next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(xml: &str) -> Result<Vec<(String, String)>, String> {
        let mut found = Vec::new();
        elements(xml.as_bytes(), |path, text| {
            found.extend(text.map(|text| (path.join("/"), text)))
        })?;
        Ok(found)
    }

    #[test]
    fn texts_are_exact() {
        let xml = "\u{feff}<?xml version=\"1.0\"?><A x=\"1\">\n <N> a &amp;&#x41;%41 </N><N Encoded=\"true\">%EF%BF%BE%41</N>\n<E/><M></M></A>";
        let wanted = [("A/N", " a &A%41 "), ("A/N", "\u{fffe}A"), ("A/E", ""), ("A/M", "")];
        let found = texts(xml).unwrap();
        assert_eq!(found, wanted.map(|(path, text)| (path.to_owned(), text.to_owned())));
    }

    #[test]
    fn a_truncated_response_is_not_believed() {
        for xml in ["<A><N>a</N>", "<A><N>a", "<A><N>a</A>", "<A>&nope;</A>"] {
            assert!(texts(xml).is_err(), "{xml}");
        }
    }

    #[test]
    fn depth_and_entities_are_bounded() {
        let nested = |n| format!("{}{}", "<a>".repeat(n), "</a>".repeat(n));
        assert!(texts(&nested(DEEPEST)).is_ok());
        // With this many, each level would be checked against each other: for hours.
        let error = texts(&nested(5_000_000)).unwrap_err();
        assert_eq!(error, "its XML has more than 16 levels");
        let bomb = "<!DOCTYPE a [<!ENTITY b \"bb\"><!ENTITY c \"&b;&b;\">]><a>&c;</a>";
        assert_eq!(texts(bomb).unwrap_err(), "its XML has an unknown entity");
    }

    #[test]
    fn an_error_has_a_message() {
        let xml = b"<?xml version=\"1.0\"?><Error><Code>X</Code><Message>It failed.\nRequestId:1\nTime:2</Message></Error>";
        assert_eq!(error_message(xml).as_deref(), Some("It failed."));
        assert_eq!(error_message(b"<html>"), None);
        assert_eq!(error_message(b""), None);
    }
}
