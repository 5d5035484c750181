//! The plugin's reports on itself, as files without a bucket: `s3:///metrics.json`, `s3:///config.json`,
//! `s3:///stores.json`.

use crate::{Filesystem, metrics};
use tf_fs_object_store::{Connect as _, Name};
use tf_fs_plugin::prelude::*;

/// Reports that change are padded to this length, so that a size that was queried before is still right when they are
/// read.
const LEN: usize = 32 << 10;

fn filled(text: String) -> Vec<u8> {
    let mut text = text.into_bytes();
    text.resize(text.len().max(LEN - 1), b' ');
    text.push(b'\n');
    text
}

/// Returns the report of this name, if it is one.
///
/// # Errors
/// If the settings are wrong.
pub(crate) fn content(s3: &Filesystem, name: &Name) -> Result<Option<Vec<u8>>> {
    if !name.bucket.is_empty() {
        return Ok(None);
    }
    let text = match name.key.as_str() {
        "metrics.json" => {
            let connection = s3.connection()?;
            let limit = s3.plugin().config.settings()?.memory_budget;
            filled(metrics::json(connection.process.budget.used(), limit))
        }
        "config.json" => s3.plugin().config.json()?.into_bytes(),
        "stores.json" => {
            let stores = serde_json::json!(s3.connection()?.client.stores());
            filled(format!("{stores:#}"))
        }
        _ => return Ok(None),
    };
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_keeps_all_of_its_text() {
        for len in [0, 1, LEN - 2, LEN - 1, LEN, LEN + 1, 3 * LEN] {
            let text = "x".repeat(len);
            let report = filled(text.clone());
            assert!(report.len() >= LEN && report.ends_with(b"\n"), "{len}");
            assert!(report.starts_with(text.as_bytes()), "{len}");
        }
    }
}
