//! Which name the whole filesystem gets for a name.

use super::state::State;
use crate::defect::Defect::{self, *};
use tf_fs_plugin::prelude::*;

/// Where the path of a name begins.
fn path_start(uri: Uri<'_>) -> usize {
    uri.as_bytes().len() - uri.path().len()
}

impl<F: Filesystem> State<F> {
    /// The name that `inner` gets.
    pub(super) fn name(&self, uri: Uri<'_>) -> Result<Vec<u8>> {
        let bytes = uri.as_bytes();
        if bytes.contains(&1) {
            let code =
                if self.is(MalformedIsMissing) { Code::NotFound } else { Code::FailedPrecondition };
            return Err(Error::new(code, "malformed"));
        }
        let mut name = if bytes == b"/" { b"mem:///".to_vec() } else { bytes.to_vec() };
        if !name.starts_with(b"mem://") {
            name = [b"mem://", &name[..]].concat();
        }
        let has_slash = name.ends_with(b"/");
        if !self.is(TranslateKeepsDots) {
            name = Uri::canonical(&name).into_owned();
        }
        if has_slash && self.is(TrailingSlashIsAName) && !Uri::new(&name).is_root() {
            name.push(b'\x02');
        }
        let (head, path) = name.split_at(path_start(Uri::new(&name)));
        let head = head.to_vec();
        let text = String::from_utf8_lossy(path).into_owned();
        let refuses = |what: bool| -> Result<()> {
            ensure!(!what, Error::invalid_argument("the name has something in it"));
            Ok(())
        };
        let replaced = match self.defect {
            DecodesPercent => text.replace("%25", "%").replace("%20", " "),
            CutsAtHash => text.split('#').next().unwrap_or_default().to_owned(),
            CutsAtQuestionMark => text.split('?').next().unwrap_or_default().to_owned(),
            IgnoresCase => text.to_lowercase(),
            Composes => text.replace("e\u{301}", "\u{e9}"),
            PlusIsSpace => text.replace('+', " "),
            BackslashIsSlash => text.replace('\\', "/"),
            TrimsSpaces => text.split('/').map(str::trim).collect::<Vec<_>>().join("/"),
            TrimsDots => {
                let parts: Vec<_> =
                    text.split('/').map(|part| part.trim_end_matches('.')).collect();
                parts.join("/")
            }
            KeysAreLastComponents if text.ends_with("/empty_file") && text.contains("/full/") => {
                text.replace("/full/empty_file", "/empty_file")
            }
            _ => text,
        };
        let part_is = |test: fn(&str) -> bool| replaced.split('/').any(test);
        match self.defect {
            ShortNames => refuses(part_is(|part| part.len() > 128))?,
            ShallowNames => refuses(replaced.split('/').count() > 17)?,
            RefusesColons => refuses(replaced.contains(':'))?,
            RefusesControls => refuses(part_is(|part| part.contains(char::is_control)))?,
            RefusesQuotes => refuses(replaced.contains('\''))?,
            RefusesStars => refuses(replaced.contains('*'))?,
            RefusesBrackets => refuses(replaced.contains('['))?,
            RefusesDashes => refuses(part_is(|part| part.starts_with('-')))?,
            RefusesTildes => refuses(part_is(|part| part == "~"))?,
            RefusesCommas => refuses(replaced.contains(','))?,
            RefusesEquals => refuses(replaced.contains('='))?,
            RootIsMissing if replaced == "/" => return Err(Error::not_found(uri)),
            _ => {}
        }
        Ok([head, replaced.into_bytes()].concat())
    }

    /// The name that `inner` gets as the target of a transfer from `src`.
    pub(super) fn target(&self, src: Uri<'_>, dst: Uri<'_>, forgets: Defect) -> Result<Vec<u8>> {
        let name = self.name(dst)?;
        let dst = Uri::new(&name);
        if self.is(forgets) {
            return Ok([&src.as_bytes()[..path_start(src)], dst.path()].concat());
        }
        Ok(name)
    }
}
