//! Listings: byte order, prefix, delimiter, pages.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::store::Stored;

/// The most names that S3 puts on a page.
pub(crate) const PAGE: usize = 1000;

/// What to list.
pub(crate) struct Query<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) delimiter: &'a str,
    /// Only names after this one; a common prefix equal to it was on the page before.
    pub(crate) after: Option<&'a str>,
    pub(crate) max: usize,
}

/// One page.
#[derive(Default)]
pub(crate) struct Page<V> {
    pub(crate) entries: Vec<(String, V)>,
    pub(crate) prefixes: Vec<String>,
    /// The last name of the page, if there are more after it.
    pub(crate) next: Option<String>,
}

/// Returns the page of `map` that `query` requests.
pub(crate) fn page<V: Clone>(map: &BTreeMap<String, V>, query: &Query<'_>) -> Page<V> {
    let mut page = Page { entries: Vec::new(), prefixes: Vec::new(), next: None };
    if query.max == 0 {
        return page;
    }
    let from = match query.after {
        Some(after) if after >= query.prefix => Bound::Excluded(after),
        _ => Bound::Included(query.prefix),
    };
    let mut last: Option<String> = None;
    for (key, value) in map.range::<str, _>((from, Bound::Unbounded)) {
        let Some(rest) = key.strip_prefix(query.prefix) else { break };
        let end = if query.delimiter.is_empty() { None } else { rest.find(query.delimiter) };
        let common = end.map(|end| &key[..query.prefix.len() + end + query.delimiter.len()]);
        if let Some(common) = common
            && (query.after == Some(common)
                || page.prefixes.last().is_some_and(|last| last == common))
        {
            continue;
        }
        if page.entries.len() + page.prefixes.len() == query.max {
            page.next = last;
            break;
        }
        match common {
            Some(common) => page.prefixes.push(common.to_owned()),
            None => page.entries.push((key.clone(), value.clone())),
        }
        last = Some(common.unwrap_or(key).to_owned());
    }
    page
}

/// A page of objects.
pub(crate) type ObjectPage = Page<Arc<Stored>>;

/// Encodes a name like S3 with `encoding-type=url`: as in a form, but without `/`.
pub(crate) fn encode(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*' | b'/' => {
                out.push(byte as char)
            }
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(
        keys: &[&str],
        prefix: &str,
        delimiter: &str,
        after: Option<&str>,
        max: usize,
    ) -> String {
        let map: BTreeMap<String, ()> = keys.iter().map(|key| (key.to_string(), ())).collect();
        let page = page(&map, &Query { prefix, delimiter, after, max });
        let names: Vec<_> = page.entries.iter().map(|(key, ())| key.as_str()).collect();
        format!("{} | {} | {:?}", names.join(" "), page.prefixes.join(" "), page.next)
    }

    #[test]
    fn pages() {
        let keys = ["a", "a/", "a/b", "a//b", "b", "b/c", "é"];
        assert_eq!(list(&keys, "", "", None, 9), "a a/ a//b a/b b b/c é |  | None");
        assert_eq!(list(&keys, "", "/", None, 9), "a b é | a/ b/ | None");
        assert_eq!(list(&keys, "a/", "/", None, 9), "a/ a/b | a// | None");
        assert_eq!(list(&keys, "", "/", None, 2), "a | a/ | Some(\"a/\")");
        assert_eq!(list(&keys, "", "/", Some("a/"), 2), "b | b/ | Some(\"b/\")");
        assert_eq!(list(&keys, "", "/", Some("b/"), 2), "é |  | None");
        assert_eq!(list(&keys, "", "/", Some("a/b"), 2), "b | b/ | Some(\"b/\")");
        assert_eq!(list(&keys, "", "", Some("a/"), 1), "a//b |  | Some(\"a//b\")");
        assert_eq!(list(&keys, "", "", None, 0), " |  | None");
        assert_eq!(list(&keys, "b", "", Some("a"), 9), "b b/c |  | None");
    }

    #[test]
    fn names_in_a_form() {
        assert_eq!(encode("a b/+é\n"), "a+b/%2B%C3%A9%0A");
    }
}
