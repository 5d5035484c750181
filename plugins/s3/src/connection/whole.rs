//! Responses that end too early although the connection did not: the SDK accepts their XML, with less in it.

/// Returns whether a body is the beginning of a document without its end.
pub(super) fn is_cut_off(body: &[u8]) -> bool {
    let body = body.trim_ascii();
    if !body.starts_with(b"<") {
        return false;
    }
    // The first tag that is neither `<?xml …?>` nor `<!-- … -->`.
    let root = body.windows(2).position(|at| at[0] == b'<' && !matches!(at[1], b'?' | b'!'));
    let Some(root) = root.map(|start| &body[start + 1..]) else { return true };
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/');
    let name = &root[..root.iter().position(is_end).unwrap_or(root.len())];
    let is_closed = body
        .strip_suffix(b">")
        .and_then(|body| body.trim_ascii_end().strip_suffix(name))
        .is_some_and(|body| body.ends_with(b"</"));
    // `<Root/>`
    let is_empty =
        root.iter().position(|&byte| byte == b'>') == Some(root.len() - 1) && root.ends_with(b"/>");
    !is_closed && !is_empty
}

#[cfg(test)]
mod tests {
    use super::is_cut_off;

    #[test]
    fn the_end_of_a_document_is_looked_for() {
        let whole = "<?xml version=\"1.0\"?>\n<List a=\"b\"><Key>x</Key></List>";
        assert!(!is_cut_off(whole.as_bytes()));
        for end in 1..whole.len() {
            assert!(is_cut_off(&whole.as_bytes()[..end]), "{}", &whole[..end]);
        }
        for whole in ["", "ok", " \n<A></A>\n", "<A/>", "<?xml?><A x=\"1\" />", "<A></A >"] {
            assert!(!is_cut_off(whole.as_bytes()), "{whole}");
        }
        for cut in ["<A><A/>", "<A><B></B>", "<A><AA></AA>", "<?xml?>"] {
            assert!(is_cut_off(cut.as_bytes()), "{cut}");
        }
    }
}
