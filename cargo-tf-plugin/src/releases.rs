//! The functions that a plugin finds in releases of TensorFlow.

use serde::Serialize;

use crate::artefact::numbers;

/// The functions that the plugin needs and a TensorFlow release lacks.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Release {
    pub(crate) version: String,
    pub(crate) missing: Vec<String>,
}

impl Release {
    /// Returns whether a plugin sees TensorFlow's functions only if it names TensorFlow's libraries as needed. Tested
    /// with `tf.load_library` of a plugin that names no library: only 2.19 to 2.21 resolve its imports.
    pub(crate) fn hides_functions(&self) -> bool {
        let version = numbers(&self.version);
        version < vec![2, 19] || version >= vec![2, 22]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_hidden_before_2_19_and_since_2_22() {
        let hides = |version: &&str| {
            let version = (*version).to_owned();
            Release { version, missing: Vec::new() }.hides_functions()
        };
        assert!(["2.12.1", "2.18.1", "2.22.0rc0"].iter().all(hides));
        assert!(!["2.19.0", "2.21.0"].iter().any(hides));
    }
}
