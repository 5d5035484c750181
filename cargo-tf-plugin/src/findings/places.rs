//! Functions that are not the plugin's.

use crate::findings::Findings;
use crate::probe::Table;

pub(crate) fn look_at_places(tables: &[Table], findings: &mut Findings) {
    for table in tables {
        for slot in &table.slots {
            match slot.elsewhere.as_deref() {
                Some("no library") => findings.error(
                    format!(
                        "`{}` in {} points to no function of any library",
                        slot.name, table.name
                    ),
                    "initialize the table with zeros before it is filled in",
                ),
                Some(library) => findings.note(
                    format!("`{}` in {} is a function of {library}", slot.name, table.name),
                    "fine, if that is meant",
                ),
                None => {}
            }
        }
    }
}
