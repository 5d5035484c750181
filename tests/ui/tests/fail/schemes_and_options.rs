//! Mistakes in the options of `#[filesystem_plugin]` and `#[filesystem]`. None hides another.

use tf_fs_plugin::prelude::*;

/// A filesystem under each attribute. The compiler points into the options as if they were not in a macro.
macro_rules! filesystems {
    ($($name:ident: #[$attribute:ident $options:tt])*) => {$(
        struct $name;

        #[$attribute $options]
        impl Filesystem for $name {
            fn new(_: &str) -> Result<Self> {
                Ok(Self)
            }
        }
    )*};
}

filesystems! {
    // TensorFlow takes all these for local paths.
    BeginsWithADigit: #[filesystem_plugin(scheme = "3fs")]
    HasADash: #[filesystem_plugin(scheme = "my-fs")]
    HasASpace: #[filesystem_plugin(scheme = "S 3")]
    IsNotAscii: #[filesystem_plugin(scheme = "mém")]
    // A scheme is a C string, without what follows it in a URI.
    HasANul: #[filesystem_plugin(scheme = "me\0m")]
    HasSlashes: #[filesystem_plugin(scheme = "s3://")]
    // TensorFlow serves paths without a scheme itself, and some schemes.
    IsEmpty: #[filesystem_plugin(scheme = "")]
    IsBuiltIn: #[filesystem_plugin(schemes("file", "ram", "gs"))]
    // The second registration would fail.
    IsListedTwice: #[filesystem_plugin(schemes("s3", "s3a", "s3"))]
    // The attribute sees tokens, not values, and runs before other macros.
    IsAConstant: #[filesystem_plugin(scheme = SCHEME)]
    IsABytesString: #[filesystem_plugin(scheme = b"mem")]
    IsAnExpression: #[filesystem_plugin(scheme = format!("mem"))]
    IsACharacter: #[filesystem_plugin(scheme = 'm')]
    HasASuffix: #[filesystem_plugin(scheme = "mem"x)]
    IsAConstantInAList: #[filesystem_plugin(schemes(SCHEME))]
    // Options have names, `scheme` a value and `schemes` a list.
    HasNoName: #[filesystem_plugin("mem")]
    IsInParentheses: #[filesystem_plugin(scheme("mem"))]
    HasNoValue: #[filesystem_plugin(scheme)]
    HasNothingAfterTheSign: #[filesystem_plugin(scheme =)]
    IsNotAList: #[filesystem_plugin(schemes = "mem")]
    IsAnEmptyList: #[filesystem_plugin(schemes())]
    HasNoList: #[filesystem_plugin(schemes)]
    HasNoCommaInItsList: #[filesystem_plugin(schemes("a1" "b1"))]
    IsGivenTwice: #[filesystem_plugin(scheme = "mem", scheme = "ram2")]
    IsGivenInBothWays: #[filesystem_plugin(scheme = "mem", schemes("a1", "b1"))]
    // `#[filesystem]` exports nothing.
    IsNotExported: #[filesystem(scheme = "mem")]

    OptionTakesNoValue: #[filesystem_plugin(scheme = "mem", allow_panic_abort = true)]
    OptionIsASwitch: #[filesystem_plugin(scheme = "mem", autoload = "off")]
    SwitchHasNoValue: #[filesystem_plugin(scheme = "mem", autoload =)]
    SwitchHasTwoValues: #[filesystem_plugin(scheme = "mem", autoload = false true)]
    OptionIsAPath: #[filesystem_plugin(scheme = "mem", crate = "tf_fs_plugin")]
    PathIsMissing: #[filesystem_plugin(scheme = "mem", crate)]
    PathHasArguments: #[filesystem_plugin(scheme = "mem", crate = tf_fs_plugin<u8>)]
    OptionHasNoName: #[filesystem_plugin(scheme = "mem", = false)]
    OptionIsEmpty: #[filesystem_plugin(scheme = "mem", , autoload = false)]
    OptionIsGivenTwice: #[filesystem_plugin(scheme = "mem", autoload = false, autoload = true)]
    // The scheme does not count as missing.
    OptionIsUnknown: #[filesystem_plugin(schem = "mem")]
    OptionIsForExports: #[filesystem(autoload = false)]
    CommaIsMissing: #[filesystem_plugin(scheme = "mem" autoload = false)]
}

// Without a scheme there is nothing to register.
struct NoOptions;

#[filesystem_plugin]
impl Filesystem for NoOptions {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

struct NoScheme;

#[filesystem_plugin(autoload = false)]
impl Filesystem for NoScheme {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

struct SeveralMistakes;

#[filesystem_plugin(schemes("my-fs", "gs"), autoload = 1, colour = "red")]
impl Filesystem for SeveralMistakes {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    // The method that needs the type is named.
    fn new_writable_file(&self, _: Uri<'_>) -> Result<Box<dyn WritableFile>> {
        Err(Error::unimplemented("no"))
    }
}

fn main() {}
