//! The plugin's reports on itself, as files without a bucket: `s3:///metrics.json`, `s3:///config.json`,
//! `s3:///stores.json`.

use crate::{Filesystem, metrics};
use tf_fs_object_store::metrics::report as filled;
use tf_fs_object_store::{Connect as _, Name};
use tf_fs_plugin::prelude::*;

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
