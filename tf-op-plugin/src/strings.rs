//! Tensors of strings: the inputs and outputs of ops.

use crate::abi::host_strings::HostStrings;
use crate::abi::string_vec::StringVec;
use crate::abi::tensor::elements_of;
use crate::tensor::Dims;
use core::fmt;
use core::ops::Index;
use tf_plugin_core::__private::boundary::raise;
use tf_plugin_core::{Code, Error, Result, ensure};

/// A tensor of strings, row by row, which does not change: an input or an output of an op. A string is any bytes, not
/// always UTF-8.
///
/// An input is TensorFlow's memory, without a copy. The op may keep it after it has returned: TensorFlow copies strings that
/// come from Python. An input that is returned as an output shares its memory with it.
///
/// ```
/// use tf_op_plugin::Strings;
///
/// let texts = Strings::new([2], ["über", "c"])?;
/// assert_eq!(&texts[1], b"c");
/// assert_eq!(texts.str(0)?, "über");
/// assert_eq!(texts.iter().map(<[u8]>::len).sum::<usize>(), 6);
/// # Ok::<(), tf_op_plugin::Error>(())
/// ```
pub struct Strings {
    pub(crate) storage: StringStorage,
}

/// Where strings are.
pub(crate) enum StringStorage {
    /// In a tensor of TensorFlow's: the input with this name.
    Host(HostStrings, &'static str),
    /// In memory of the plugin, with a shape.
    Own(StringsBuf, Dims),
}

impl Strings {
    /// Creates a tensor from a shape and its strings, which it copies.
    ///
    /// # Errors
    /// `INTERNAL` if the shape has another number of elements.
    pub fn new<S: AsRef<[u8]>>(
        shape: impl AsRef<[i64]>,
        strings: impl IntoIterator<Item = S>,
    ) -> Result<Self> {
        let mut buf = StringsBuf::new();
        strings.into_iter().for_each(|string| buf.push(string));
        buf.with_shape(shape)
    }

    /// Creates a tensor without dimensions.
    #[must_use]
    pub fn scalar(string: impl AsRef<[u8]>) -> Self {
        let mut buf = StringsBuf::new();
        buf.push(string);
        Self { storage: StringStorage::Own(buf, Dims::new()) }
    }

    /// Returns the length of each dimension, of which a scalar has none.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        match &self.storage {
            StringStorage::Host(strings, _) => strings.shape(),
            StringStorage::Own(_, shape) => shape,
        }
    }

    /// Returns the number of strings.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.storage {
            StringStorage::Host(strings, _) => strings.len(),
            StringStorage::Own(strings, _) => strings.len(),
        }
    }

    /// Returns whether there are no strings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of a string, in row-major order, or `None` if there are not so many.
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        match &self.storage {
            StringStorage::Host(strings, _) => strings.get(index),
            StringStorage::Own(strings, _) => strings.get(index),
        }
    }

    /// Returns a string as text.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is not UTF-8, `OUT_OF_RANGE` if there is none with this index.
    pub fn str(&self, index: usize) -> Result<&str> {
        let string = self.get(index).ok_or_else(|| {
            let text = format!("there is no string {index}: {self} has {}", self.len());
            Error::new(Code::OutOfRange, text)
        })?;
        core::str::from_utf8(string).map_err(|error| {
            let valid = error.valid_up_to();
            let text = format!("string {index} of {self} is not UTF-8 at byte {valid}");
            Error::invalid_argument(text)
        })
    }

    /// Returns the only string.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is not exactly one.
    pub fn only(&self) -> Result<&[u8]> {
        match self.get(0) {
            Some(only) if self.len() == 1 => Ok(only),
            _ => Err(Error::invalid_argument(format!(
                "expected one string, got the shape {:?}",
                self.shape()
            ))),
        }
    }

    /// Returns the strings as text, in row-major order; each may be an error as for [`str`](Self::str).
    pub fn texts(&self) -> impl ExactSizeIterator<Item = Result<&str>> {
        (0..self.len()).map(|index| self.str(index))
    }

    /// Returns the strings, in row-major order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        match &self.storage {
            StringStorage::Host(strings, _) => strings.iter(),
            StringStorage::Own(strings, _) => strings.strings.iter(),
        }
    }

    /// Returns whether both are the same memory of TensorFlow's: while one of them is kept, this shows without a
    /// comparison that another run of the op has got the same content.
    #[must_use]
    pub fn is_same_memory(&self, other: &Self) -> bool {
        match (&self.storage, &other.storage) {
            (StringStorage::Host(a, _), StringStorage::Host(b, _)) => {
                a.address() == b.address() && a.len() == b.len()
            }
            _ => false,
        }
    }
}

impl Index<usize> for Strings {
    type Output = [u8];

    #[inline]
    #[track_caller]
    fn index(&self, index: usize) -> &[u8] {
        match self.get(index) {
            Some(string) => string,
            None => self.none_at(index),
        }
    }
}

impl Strings {
    #[cold]
    #[track_caller]
    fn none_at(&self, index: usize) -> ! {
        panic!("there is no string {index}: {self} has {}", self.len());
    }
}

/// For error texts: the input.
impl fmt::Display for Strings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.storage {
            StringStorage::Host(_, name) => write!(f, "input `{name}`"),
            StringStorage::Own(..) => f.write_str("the tensor"),
        }
    }
}

impl fmt::Debug for Strings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Strings({:?})", self.shape())
    }
}

/// Creates a vector.
impl<S: AsRef<[u8]>> FromIterator<S> for Strings {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        strings.into_iter().collect::<StringsBuf>().into()
    }
}

/// A growing tensor of strings: the memory of an output, which TensorFlow takes over without a copy. A string of more than
/// 22 bytes takes one allocation, a shorter one none.
///
/// ```
/// use tf_op_plugin::StringsBuf;
///
/// let mut words = StringsBuf::new();
/// "to be or".split(' ').for_each(|word| words.push(word));
/// assert_eq!(words.with_shape([3, 1])?.str(2)?, "or");
/// # Ok::<(), tf_op_plugin::Error>(())
/// ```
pub struct StringsBuf {
    pub(crate) strings: StringVec,
    /// For strings that are written step by step.
    scratch: Vec<u8>,
}

impl StringsBuf {
    /// Creates a buffer without strings.
    #[must_use]
    pub const fn new() -> Self {
        Self { strings: StringVec::new(), scratch: Vec::new() }
    }

    /// Creates a buffer without strings, with memory for `capacity` of them.
    ///
    /// # Panics
    /// If there is no memory; the op then fails with `RESOURCE_EXHAUSTED`.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let mut buf = Self::new();
        buf.reserve(capacity, false);
        buf
    }

    /// Adds a copy of a string.
    ///
    /// # Panics
    /// If there is no memory; the op then fails with `RESOURCE_EXHAUSTED`.
    #[inline]
    pub fn push(&mut self, string: impl AsRef<[u8]>) {
        let string = string.as_ref();
        if !self.strings.push(string) {
            no_memory(1, string.len());
        }
    }

    fn reserve(&mut self, strings: usize, amortized: bool) {
        if !self.strings.try_reserve(strings, amortized) {
            no_memory(strings, 0);
        }
    }

    /// Adds the string that `write` writes into the empty vector it gets, which has memory from earlier strings.
    ///
    /// # Panics
    /// If there is no memory; the op then fails with `RESOURCE_EXHAUSTED`.
    #[inline]
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.scratch.clear();
        write(&mut self.scratch);
        if !self.strings.push(&self.scratch) {
            no_memory(1, self.scratch.len());
        }
    }

    /// Adds a string of `len` bytes that `write` changes: zeros at first, in the memory of the output. Faster than
    /// [`push_with`](Self::push_with) if the length is known.
    ///
    /// ```
    /// use tf_op_plugin::StringsBuf;
    ///
    /// let mut reversed = StringsBuf::new();
    /// reversed.push_sized(3, |bytes| {
    ///     bytes.copy_from_slice(b"abc");
    ///     bytes.reverse();
    /// });
    /// assert_eq!(reversed.get(0), Some(&b"cba"[..]));
    /// ```
    ///
    /// # Panics
    /// If there is no memory; the op then fails with `RESOURCE_EXHAUSTED`.
    #[inline]
    pub fn push_sized(&mut self, len: usize, write: impl FnOnce(&mut [u8])) {
        match self.strings.push_zeros(len) {
            Some(bytes) => write(bytes),
            None => no_memory(1, len),
        }
    }

    /// Moves the strings of another buffer to the end.
    ///
    /// # Panics
    /// If there is no memory; the op then fails with `RESOURCE_EXHAUSTED`.
    pub fn append(&mut self, other: Self) {
        let len = other.len();
        if !self.strings.append(other.strings) {
            no_memory(len, 0);
        }
    }

    /// Returns the number of strings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Returns whether there are no strings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a string, or `None` if there are not so many.
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.strings.get(index)
    }

    /// Returns the strings.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.strings.iter()
    }

    /// Returns the tensor with this shape.
    ///
    /// # Errors
    /// `INTERNAL` if the shape has another number of elements.
    pub fn with_shape(self, shape: impl AsRef<[i64]>) -> Result<Strings> {
        let shape = shape.as_ref();
        ensure!(
            elements_of(shape)? == self.len(),
            Error::internal(format!("{} strings do not have the shape {shape:?}", self.len()))
        );
        Ok(Strings { storage: StringStorage::Own(self, Dims::from_slice(shape)) })
    }
}

#[cold]
#[inline(never)]
fn no_memory(strings: usize, bytes: usize) -> ! {
    raise(Error::resource_exhausted(format!(
        "no memory for {strings} more strings of {bytes} bytes; use smaller batches"
    )))
}

impl Default for StringsBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for StringsBuf {
    fn clone(&self) -> Self {
        let mut buf = Self::with_capacity(self.len());
        buf.extend(self.iter());
        buf
    }
}

impl<S: AsRef<[u8]>> Extend<S> for StringsBuf {
    fn extend<I: IntoIterator<Item = S>>(&mut self, strings: I) {
        let strings = strings.into_iter();
        self.reserve(strings.size_hint().0, true);
        strings.for_each(|string| self.push(string));
    }
}

impl<S: AsRef<[u8]>> FromIterator<S> for StringsBuf {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        let mut buf = Self::new();
        buf.extend(strings);
        buf
    }
}

/// Creates a vector.
impl From<StringsBuf> for Strings {
    fn from(buf: StringsBuf) -> Self {
        let shape = Dims::from_elem(buf.len() as i64, 1);
        Self { storage: StringStorage::Own(buf, shape) }
    }
}

impl fmt::Debug for StringsBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StringsBuf({} strings)", self.len())
    }
}
