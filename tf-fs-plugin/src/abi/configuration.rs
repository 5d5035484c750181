//! The slots of configuration options.

use super::alloc::{Block, Blocks, c_buffer, c_string};
use super::registration::table;
use super::state::{Path, State, bytes, null_argument, place, slots};
use crate::filesystem::Filesystem;
use crate::operations::Operations;
use crate::options::{FilesystemOption, OptionValues};
use core::ffi::{c_char, c_int};
use tf_fs_sys::{
    TF_Filesystem, TF_Filesystem_Option, TF_Filesystem_Option_Type_Buffer,
    TF_Filesystem_Option_Type_Int, TF_Filesystem_Option_Type_Real, TF_Filesystem_Option_Value,
    TF_Filesystem_Option_Value_Buffer, TF_Filesystem_Option_Value_Union, TF_FilesystemOps,
    TF_Status,
};
use tf_plugin_core::__private::boundary::guard;
use tf_plugin_core::{Error, Result, ResultExt as _};

const INT: c_int = TF_Filesystem_Option_Type_Int as c_int;
const REAL: c_int = TF_Filesystem_Option_Type_Real as c_int;
const BUFFER: c_int = TF_Filesystem_Option_Type_Buffer as c_int;

/// Adds the slots of configuration options to a table.
pub(super) const fn add_to<F: Filesystem>(ops: TF_FilesystemOps) -> TF_FilesystemOps {
    table! {
        get_filesystem_configuration if GET_FILESYSTEM_CONFIGURATION;
        set_filesystem_configuration
            if SET_FILESYSTEM_CONFIGURATION | SET_FILESYSTEM_CONFIGURATION_OPTION;
        get_filesystem_configuration_option
            if GET_FILESYSTEM_CONFIGURATION_OPTION | GET_FILESYSTEM_CONFIGURATION;
        set_filesystem_configuration_option if SET_FILESYSTEM_CONFIGURATION_OPTION;
        get_filesystem_configuration_keys
            if GET_FILESYSTEM_CONFIGURATION_KEYS | GET_FILESYSTEM_CONFIGURATION;
        ..ops
    }
}

slots! {
    fn get_filesystem_configuration(
        filesystem: state, options: *mut *mut TF_Filesystem_Option, num_options: *mut c_int
    ) {
        let (options, num_options) = (place(options)?, place(num_options)?);
        let answer = state.filesystem.get_filesystem_configuration()?;
        let count = length(answer.len())?;
        *options = give_options(&answer)?;
        *num_options = count;
        Ok(())
    }
    fn set_filesystem_configuration(
        filesystem: state, options: *const TF_Filesystem_Option, num_options: c_int
    ) {
        let options = array(options, num_options)?;
        let options = options.iter().map(|option| from_host(option)).collect::<Result<Vec<_>>>()?;
        state.filesystem.set_filesystem_configuration(&options)
    }
    fn get_filesystem_configuration_option(
        filesystem: state, key: Path, option: *mut *mut TF_Filesystem_Option
    ) {
        let place = place(option)?;
        let key = text(key).context("the key of an option")?;
        let answer = state.filesystem.get_filesystem_configuration_option(key)?;
        *place = give_options(&[answer])?;
        Ok(())
    }
    fn set_filesystem_configuration_option(filesystem: state, option: *const TF_Filesystem_Option) {
        let option = from_host(option.as_ref().ok_or_else(null_argument)?)?;
        state.filesystem.set_filesystem_configuration_option(&option)
    }
    /// Returns all keys in one block, one after the other, each with its NUL: the header gives them
    /// the type of one string.
    fn get_filesystem_configuration_keys(
        filesystem: state, keys: *mut *mut c_char, num_keys: *mut c_int
    ) {
        let (keys, num_keys) = (place(keys)?, place(num_keys)?);
        let answer = state.filesystem.get_filesystem_configuration_keys()?;
        let count = length(answer.len())?;
        let mut joined = Vec::new();
        for key in &answer {
            if key.contains('\0') {
                return Err(Error::internal("the plugin returned an option key with a NUL inside"));
            }
            joined.extend_from_slice(key.as_bytes());
            joined.push(0);
        }
        *keys = c_buffer(&joined)?.into_raw();
        *num_keys = count;
        Ok(())
    }
}

fn length(len: usize) -> Result<c_int> {
    c_int::try_from(len)
        .map_err(|_| Error::resource_exhausted("more values than TensorFlow can take"))
}

/// An option in memory for the host, freed when it is dropped.
#[doc(hidden)]
pub struct OwnedOption {
    raw: TF_Filesystem_Option,
    _blocks: Blocks,
}

impl OwnedOption {
    pub fn new(option: &FilesystemOption) -> Result<Self> {
        let mut blocks = Blocks::default();
        Ok(Self { raw: for_host(option, &mut blocks)?, _blocks: blocks })
    }

    /// Returns the option, which is valid while `self` lives.
    pub fn raw(&self) -> TF_Filesystem_Option {
        self.raw
    }
}

/// Converts an option for the host; `blocks` keeps all parts of it.
fn for_host(option: &FilesystemOption, blocks: &mut Blocks) -> Result<TF_Filesystem_Option> {
    use TF_Filesystem_Option_Value_Union as Union;
    let (type_tag, values): (_, Vec<Union>) = match &option.values {
        OptionValues::Int(values) => {
            (INT, values.iter().map(|&int_val| Union { int_val }).collect())
        }
        OptionValues::Real(values) => {
            (REAL, values.iter().map(|&real_val| Union { real_val }).collect())
        }
        OptionValues::Buffer(values) => {
            let buffers = values.iter().map(|value| {
                let buf = blocks.keep(c_buffer(value)?);
                let buf_length = length(value.len())?;
                Ok(Union { buffer_val: TF_Filesystem_Option_Value_Buffer { buf, buf_length } })
            });
            (BUFFER, buffers.collect::<Result<_>>()?)
        }
    };
    let value = TF_Filesystem_Option_Value {
        type_tag,
        num_values: length(values.len())?,
        values: blocks.keep(Block::of(&values)?),
    };
    Ok(TF_Filesystem_Option {
        name: blocks.keep(c_string(option.name.as_bytes())?),
        description: blocks.keep(c_string(option.description.as_bytes())?),
        per_file: c_int::from(option.per_file),
        value: blocks.keep(Block::of(&[value])?),
    })
}

fn give_options(options: &[FilesystemOption]) -> Result<*mut TF_Filesystem_Option> {
    let mut blocks = Blocks::default();
    let options = options.iter().map(|option| for_host(option, &mut blocks));
    let array = Block::of(&options.collect::<Result<Vec<_>>>()?)?;
    Ok(blocks.give(array))
}

/// Returns a C array of the host as a slice.
///
/// # Safety
/// `start` must be null or point to `count` values that live for `'a`.
unsafe fn array<'a, T>(start: *const T, count: c_int) -> Result<&'a [T]> {
    let count = usize::try_from(count)
        .map_err(|_| Error::invalid_argument(format_args!("{count} is not a number of values")))?;
    if count == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        return Err(null_argument());
    }
    // SAFETY: `start` is not null and points to `count` values that live for `'a`.
    Ok(unsafe { core::slice::from_raw_parts(start, count) })
}

/// Returns a C string of the host as text.
///
/// # Safety
/// `string` must be null or a C string that lives for `'a`.
unsafe fn text<'a>(string: *const c_char) -> Result<&'a str> {
    // SAFETY: `string` is null or a C string that lives for `'a`.
    core::str::from_utf8(unsafe { bytes(string) }?)
        .map_err(|_| Error::invalid_argument("it is not valid UTF-8"))
}

/// Copies an option of the host.
///
/// # Safety
/// All pointers in `option` must be null or valid, as the header says.
#[doc(hidden)]
pub unsafe fn from_host(option: &TF_Filesystem_Option) -> Result<FilesystemOption> {
    // SAFETY: the pointers in `option` are null or valid, as the header requires; the tag says which member of
    // a union is set.
    unsafe {
        let name = text(option.name).context("the name of an option")?.to_owned();
        let of = |part| format!("{part} of option `{name}`");
        let description = if option.description.is_null() {
            String::new()
        } else {
            text(option.description).context(of("the description"))?.to_owned()
        };
        let value = option.value.as_ref().ok_or_else(null_argument).context(of("the value"))?;
        let values = array(value.values.cast_const(), value.num_values);
        let values = values.context(of("the values"))?;
        let values = match value.type_tag {
            INT => OptionValues::Int(values.iter().map(|value| value.int_val).collect()),
            REAL => OptionValues::Real(values.iter().map(|value| value.real_val).collect()),
            BUFFER => OptionValues::Buffer(
                values
                    .iter()
                    .map(|value| {
                        let buffer = value.buffer_val;
                        let bytes = array(buffer.buf.cast::<u8>().cast_const(), buffer.buf_length);
                        Ok(bytes.context(of("a buffer"))?.to_vec())
                    })
                    .collect::<Result<_>>()?,
            ),
            other => {
                return Err(Error::invalid_argument(format_args!(
                    "option `{name}` has the unknown type {other}; expected 0 (int), 1 (real) or 2 (buffer)"
                )));
            }
        };
        Ok(FilesystemOption { name, description, per_file: option.per_file != 0, values })
    }
}
