//! Configuration options of a filesystem.

/// A configuration option.
#[derive(Clone, Debug, PartialEq)]
pub struct FilesystemOption {
    /// The key.
    pub name: String,
    /// A description for people; empty when TensorFlow sets an option.
    pub description: String,
    /// Whether the option belongs to a file rather than to the whole filesystem.
    pub per_file: bool,
    /// Its values.
    pub values: OptionValues,
}

/// The values of an option, all of one type.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OptionValues {
    /// Integers.
    Int(Vec<i64>),
    /// Real numbers.
    Real(Vec<f64>),
    /// Strings of bytes, which may hold NUL.
    Buffer(Vec<Vec<u8>>),
}

impl FilesystemOption {
    /// Creates an option of the whole filesystem without a description.
    #[must_use]
    pub fn new(name: impl Into<String>, values: OptionValues) -> Self {
        Self { name: name.into(), description: String::new(), per_file: false, values }
    }

    /// Sets the description.
    #[must_use]
    pub fn with_description(self, description: impl Into<String>) -> Self {
        Self { description: description.into(), ..self }
    }

    /// Makes this an option of a file rather than of the whole filesystem.
    #[must_use]
    pub fn per_file(self) -> Self {
        Self { per_file: true, ..self }
    }
}
