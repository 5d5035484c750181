//! Listings of FTP: facts (RFC 3659), or lines as `ls -l` writes them.

use crate::service::Entry;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tf_fs_object_store::ObjectMeta;

/// Returns the name and the entry of a line of `MLSD` or `MLST`. `None` for the directory itself and its parent, and for what
/// is neither a file nor a directory.
pub(super) fn facts(line: &str) -> Option<(String, Entry)> {
    let (facts, name) = line.split_once(' ')?;
    let (mut kind, mut size, mut modified) = (String::new(), 0, None);
    for fact in facts.split(';') {
        let Some((key, value)) = fact.split_once('=') else { continue };
        match &*key.to_ascii_lowercase() {
            "type" => kind = value.to_ascii_lowercase(),
            "size" => size = value.parse().unwrap_or(0),
            "modify" => modified = time(value),
            _ => {}
        }
    }
    let entry = match &*kind {
        "dir" => Entry::directory(),
        "file" => Entry::file(ObjectMeta::new(size).with_modified(modified)),
        _ => return None,
    };
    Some((name.to_owned(), entry))
}

/// Returns the name and the entry of a line as `ls -l` writes it, with the time left out: it has no seconds.
pub(super) fn long(line: &str) -> Option<(String, Entry)> {
    let mut rest = line;
    let mut field = || {
        rest = rest.trim_start_matches(' ');
        let (field, after) = rest.split_once(' ')?;
        rest = after;
        Some(field)
    };
    let mode = field()?;
    let (_links, _user, _group) = (field()?, field()?, field()?);
    let size = field()?.parse().ok()?;
    let (_month, _day, _time) = (field()?, field()?, field()?);
    let entry = match mode.as_bytes().first()? {
        b'd' => Entry::directory(),
        b'-' => Entry::file(ObjectMeta::new(size)),
        _ => return None,
    };
    Some((rest.to_owned(), entry))
}

/// Returns a time such as `20261129135501.123`.
pub(super) fn time(text: &str) -> Option<SystemTime> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u32>().ok();
    let (year, month, day) = (number(0..4)?, number(4..6)?, number(6..8)?);
    let (hour, minute, second) = (number(8..10)?, number(10..12)?, number(12..14)?);
    if !(1..=12).contains(&month) || year < 1970 {
        return None;
    }
    // Days since 1970, with years that begin in March.
    let years = u64::from(year) - u64::from(month <= 2);
    let months = (u64::from(month) + 9) % 12;
    let days = years * 365 + years / 4 - years / 100
        + years / 400
        + (months * 153 + 2) / 5
        + u64::from(day);
    let days = days.checked_sub(719_469)?;
    let seconds =
        days * 86_400 + u64::from(hour) * 3_600 + u64::from(minute) * 60 + u64::from(second);
    let fraction = text.get(14..).and_then(|rest| rest.strip_prefix('.'));
    let fraction = fraction.and_then(|digits| format!("0.{digits}").parse::<f64>().ok());
    let fraction = Duration::try_from_secs_f64(fraction.unwrap_or(0.0)).unwrap_or_default();
    Some(UNIX_EPOCH + Duration::from_secs(seconds) + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn times_are_read() {
        for (text, seconds) in [
            ("19700101000000", 0),
            ("19700301000000", 59 * 86_400),
            ("20000229235959", 951_868_799),
            ("20261129135501", 1_795_960_501),
        ] {
            assert_eq!(time(text), Some(at(seconds)), "{text}");
        }
        assert_eq!(time("19700101000001.5"), Some(UNIX_EPOCH + Duration::from_millis(1500)));
        for text in ["", "2026", "20261329135501", "x0261129135501", "19690101000000"] {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn lines_are_read() {
        let file = |size| Entry::file(ObjectMeta::new(size));
        let (name, entry) = facts("type=file;size=5;modify=19700101000002;perm=r; a b ").unwrap();
        assert_eq!((&*name, entry.meta.modified), ("a b ", Some(at(2))));
        assert_eq!(facts("Type=dir;Sizd=4096; d").unwrap(), ("d".into(), Entry::directory()));
        for line in ["type=cdir; .", "type=pdir; ..", "type=OS.unix=slink; l", "", "x"] {
            assert_eq!(facts(line), None, "{line}");
        }
        for (line, name, entry) in [
            ("-rw-r--r--    1 0        0               5 Nov 29 13:00 a b", "a b", file(5)),
            ("-rw-r--r-- 1 u g 0 Nov  9  2024  x", " x", file(0)),
            ("drwxr-xr-x    2 0        0            4096 Nov 29 13:00 d", "d", Entry::directory()),
        ] {
            assert_eq!(long(line), Some((name.to_owned(), entry)), "{line}");
        }
        for line in
            ["", "total 5", "lrwxrwxrwx 1 u g 1 Nov 29 13:00 l -> a", "-rw 1 u g x Nov 1 1:00 f"]
        {
            assert_eq!(long(line), None, "{line}");
        }
    }
}
