//! The slots of configuration options.

use super::mounted::{Mounted, c_path};
use super::transactions::{call, null_slot};
use crate::filesystem::test_filesystem::TestFilesystem;
use core::ffi::{CStr, c_char, c_int};
use core::ptr;
use tf_fs_plugin::__private::testing::{OwnedOption, from_host};
use tf_fs_plugin::FilesystemOption;
use tf_fs_sys::{TF_Filesystem_Option, TF_Filesystem_Option_Type_Buffer};
use tf_plugin_core::{Code, Error, Result, ResultExt as _};

/// The value of a count that a slot has not written yet.
const UNSET_COUNT: c_int = c_int::MIN;

/// Returns an option as TensorFlow passes it: an empty description is null.
fn raw(option: &mut OwnedOption) -> TF_Filesystem_Option {
    let mut raw = option.raw();
    // SAFETY: the option's text, which lives as long as the option.
    if unsafe { *raw.description } == 0 {
        raw.description = ptr::null_mut();
    }
    raw
}

impl TestFilesystem {
    /// Sets several options. An empty description is passed as null, as TensorFlow does.
    pub fn set_filesystem_configuration(&self, options: &[FilesystemOption]) -> Result<()> {
        let Some(slot) = self.mounted.tables.filesystem.set_filesystem_configuration else {
            let what = "Filesystem does not support SetConfiguration()";
            return Err(Error::new(Code::Unimplemented, what));
        };
        let mut options =
            options.iter().map(OwnedOption::new).collect::<Result<Vec<OwnedOption>>>()?;
        let raw: Vec<TF_Filesystem_Option> = options.iter_mut().map(raw).collect();
        let count = c_int::try_from(raw.len()).map_err(Error::invalid_argument)?;
        let start = if raw.is_empty() { ptr::null() } else { raw.as_ptr() };
        // SAFETY: an initialised filesystem of this table, `count` options and a status.
        let call = |status| unsafe { slot(self.as_ptr(), start, count, status) };
        self.mounted.call("set_filesystem_configuration", b"", call).0
    }

    /// Sets one option. TensorFlow never does.
    pub fn set_filesystem_configuration_option(&self, option: &FilesystemOption) -> Result<()> {
        let mut owned = OwnedOption::new(option)?;
        let raw = raw(&mut owned);
        let name = option.name.as_bytes();
        call!(self, name, set_filesystem_configuration_option(&raw const raw)).0
    }

    /// Returns all options of the filesystem, or an error if one cannot be read. TensorFlow never calls this.
    pub fn get_filesystem_configuration(&self) -> Result<Vec<FilesystemOption>> {
        let (mut array, mut count) = (ptr::null_mut(), UNSET_COUNT);
        let (result, ()) = call!(self, b"", get_filesystem_configuration(&mut array, &mut count));
        self.mounted.answer("get_filesystem_configuration", b"", result, array, count)
    }

    /// Returns one option by its key, or an error if it cannot be read. TensorFlow never calls this.
    pub fn get_filesystem_configuration_option(&self, key: &str) -> Result<FilesystemOption> {
        const OP: &str = "get_filesystem_configuration_option";
        let (key, mut option) = (key.as_bytes(), ptr::null_mut());
        let c = c_path(key);
        let (result, ()) =
            call!(self, key, get_filesystem_configuration_option(c.as_ptr(), &mut option));
        let count = if result.is_ok() { 1 } else { UNSET_COUNT };
        let found = self.mounted.answer(OP, key, result, option, count)?.pop();
        found.ok_or_else(|| Error::internal("the plugin answered OK without an option"))
    }

    /// Returns the keys of all options. TensorFlow never calls this. The header does not say how several keys fit into
    /// one string; this SDK writes them one after the other, each with its NUL.
    pub fn get_filesystem_configuration_keys(&self) -> Result<Vec<String>> {
        const OP: &str = "get_filesystem_configuration_keys";
        let (mut keys, mut count) = (ptr::null_mut::<c_char>(), UNSET_COUNT);
        let (result, ()) =
            call!(self, b"", get_filesystem_configuration_keys(&mut keys, &mut count));
        if let Err(error) = result {
            if !keys.is_null() || count != UNSET_COUNT {
                self.violation(OP, b"", "failed but wrote keys, which nobody frees");
            }
            return Err(error);
        }
        if count < 0 || (keys.is_null() && count > 0) {
            self.violation(OP, b"", "answered OK without keys or their number");
        }
        let mut texts = Vec::new();
        let mut at = keys.cast_const();
        for _ in 0..if keys.is_null() { 0 } else { count } {
            // SAFETY: the plugin's block holds `count` C strings, one after the other.
            unsafe {
                let key = CStr::from_ptr(at);
                texts.push(key.to_string_lossy().into_owned());
                at = at.add(key.count_bytes() + 1);
            }
        }
        // SAFETY: null, or a block of the plugin's allocator that was copied.
        unsafe { self.mounted.blocks.release(OP, b"", keys) };
        Ok(texts)
    }
}

impl Mounted {
    /// Copies and frees an array of options.
    fn answer(
        &self,
        op: &'static str,
        subject: &[u8],
        result: Result<()>,
        array: *mut TF_Filesystem_Option,
        count: c_int,
    ) -> Result<Vec<FilesystemOption>> {
        if let Err(error) = result {
            if !array.is_null() || count != UNSET_COUNT {
                self.violation(op, subject, "failed but wrote options, which nobody frees");
            }
            return Err(error);
        }
        let len = usize::try_from(count).unwrap_or_else(|_| {
            self.violation(op, subject, "answered OK without the number of options");
            0
        });
        if array.is_null() {
            if len > 0 {
                self.violation(op, subject, "answered OK without the options");
            }
            return Ok(Vec::new());
        }
        // SAFETY: `len` options from the plugin's allocator, the host's to free, and freed after they
        // were copied.
        unsafe {
            let take = |index| self.take_option(op, subject, &array.add(index).read());
            // All options are taken over, also those behind one that cannot be read.
            let options: Vec<_> = (0..len).map(take).collect();
            self.blocks.release(op, subject, array);
            options.into_iter().collect()
        }
    }

    /// Copies an option and frees its blocks.
    ///
    /// # Safety
    /// Every pointer in `option` must be null or a block from the plugin's allocator that is the
    /// host's to free, as large as the header says.
    unsafe fn take_option(
        &self,
        op: &'static str,
        subject: &[u8],
        option: &TF_Filesystem_Option,
    ) -> Result<FilesystemOption> {
        // SAFETY: the pointers in `option` are null or valid as the header says.
        let copied = unsafe { from_host(option) };
        if option.description.is_null() {
            self.violation(op, subject, "an option has no description");
        }
        // SAFETY: the plugin passes ownership of the option's blocks, which were copied; each is freed once. Values
        // that are not null are `num_values`, and each has a buffer if the tag says so.
        unsafe {
            self.blocks.release(op, subject, option.name);
            self.blocks.release(op, subject, option.description);
            if let Some(value) = option.value.as_ref() {
                let is_buffers = value.type_tag == TF_Filesystem_Option_Type_Buffer as c_int;
                let has_buffers = is_buffers && !value.values.is_null();
                let buffers = if has_buffers { value.num_values } else { 0 };
                for index in 0..buffers {
                    let buffer = value.values.add(index as usize).read().buffer_val;
                    self.blocks.release(op, subject, buffer.buf);
                }
                self.blocks.release(op, subject, value.values);
            }
            self.blocks.release(op, subject, option.value);
        }
        copied.context("an option cannot be read")
    }
}
