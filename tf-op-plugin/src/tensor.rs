//! Tensors of numbers in host memory: the inputs and outputs of ops.

use crate::abi::aligned_vec::AlignedVec;
use crate::abi::cpu::Run;
use crate::abi::host_tensor::HostTensor;
use crate::abi::tensor::elements_of;
use crate::kernel::Element;
use core::fmt;
use core::ops::{Deref, DerefMut};
use tf_plugin_core::__private::boundary::raise;
use tf_plugin_core::{Error, Result, ensure};

/// The length of each dimension.
pub(crate) type Dims = smallvec::SmallVec<[i64; 4]>;

/// A tensor of numbers or booleans, row by row in host memory: an input or an output of an op.
///
/// An input is TensorFlow's memory, without a copy, and does not change while the op runs. An input that is returned as an
/// output shares its memory with it.
///
/// A tensor is not [`Send`], so an op cannot keep one after it has returned: an eager call may pass the memory of a NumPy array,
/// which the program can change later. Keep `x.to_vec()`, or a [`TensorBuf`]. The compiler accepts one in a `thread_local!` and
/// one that is leaked; both are mistakes, which the in-process host of `tf-plugin-testing` reports.
///
/// ```
/// use tf_op_plugin::Tensor;
///
/// let x = Tensor::new([2, 3], vec![1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(x.shape(), [2, 3]);
/// assert_eq!(x.iter().sum::<f32>(), 21.0);
/// assert_eq!(x.map(|x| x as i64).rows().nth(1), Some(&[4, 5, 6][..]));
/// # Ok::<(), tf_op_plugin::Error>(())
/// ```
pub struct Tensor<T> {
    pub(crate) storage: Storage<T>,
}

/// What a tensor of TensorFlow's is to the run with this identity; to other runs it is only a tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Role {
    pub(crate) run: u64,
    pub(crate) place: Place,
}

/// A place among the tensors of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// The input with this index.
    Input(usize),
    /// The output with this index, since it was created.
    Output(usize),
}

impl Role {
    /// Returns the place in a run, unless it is another run's.
    pub(crate) const fn place_in(self, run: &Run<'_>) -> Option<Place> {
        if self.run == run.identity() { Some(self.place) } else { None }
    }
}

/// Where the elements of a tensor are.
pub(crate) enum Storage<T> {
    /// In a tensor of TensorFlow's.
    Host(HostTensor<T>, Role),
    /// In memory of the plugin, with a shape.
    Own(AlignedVec<T>, Dims),
}

impl<T: Element> Tensor<T> {
    /// Creates a tensor from a shape and its elements, which it copies. [`TensorBuf`] creates one without a copy.
    ///
    /// # Errors
    /// `INTERNAL` if the shape has another number of elements.
    pub fn new(shape: impl AsRef<[i64]>, elements: impl AsRef<[T]>) -> Result<Self> {
        let mut buf = TensorBuf::new();
        buf.extend_from_slice(elements.as_ref());
        buf.with_shape(shape)
    }

    /// Creates a tensor without dimensions.
    #[must_use]
    pub fn scalar(element: T) -> Self {
        let mut buf = TensorBuf::new();
        buf.push(element);
        Self { storage: Storage::Own(buf.elements, Dims::new()) }
    }

    /// Returns the length of each dimension, of which a scalar has none.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        match &self.storage {
            Storage::Host(tensor, _) => tensor.shape(),
            Storage::Own(_, shape) => shape,
        }
    }

    /// Returns the elements, row by row. A tensor dereferences to them, too.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        match &self.storage {
            Storage::Host(tensor, _) => tensor.as_slice(),
            Storage::Own(elements, _) => elements.as_slice(),
        }
    }

    /// Returns the rows: slices as long as the last dimension. A scalar is one row of one element; the shape `[3, 0]` has three
    /// rows without elements.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[T]> {
        let (elements, shape) = (self.as_slice(), self.shape());
        let len = shape.last().map_or(1, |&len| usize::try_from(len).unwrap_or(0));
        let count = elements.len().checked_div(len).unwrap_or_else(|| {
            // No product of a shape's first lengths is too large.
            shape[..shape.len() - 1].iter().product::<i64>() as usize
        });
        (0..count).map(move |row| &elements[row * len..][..len])
    }

    /// Returns the only element.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is not exactly one.
    pub fn only(&self) -> Result<T> {
        match self.as_slice() {
            [only] => Ok(*only),
            _ => Err(Error::invalid_argument(format!(
                "expected one element, got the shape {:?}",
                self.shape()
            ))),
        }
    }

    /// Returns a tensor of the same shape with `f` of each element.
    #[must_use]
    pub fn map<U: Element>(&self, mut f: impl FnMut(T) -> U) -> Tensor<U> {
        let mut buf = TensorBuf::with_capacity(self.len());
        buf.extend_exact(self.as_slice(), |&element| f(element));
        Tensor { storage: Storage::Own(buf.elements, Dims::from_slice(self.shape())) }
    }
}

impl<T: Element> Deref for Tensor<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Element> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {:?})", T::DTYPE, self.shape())
    }
}

/// Creates a vector.
impl<T: Element> FromIterator<T> for Tensor<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        elements.into_iter().collect::<TensorBuf<T>>().into()
    }
}

/// A growing tensor, or one whose elements are written: the memory of an output, which TensorFlow takes over
/// without a copy.
///
/// ```
/// use tf_op_plugin::{Tensor, TensorBuf};
///
/// let mut squares = TensorBuf::new();
/// for number in 0..6_i64 {
///     squares.push(number * number);
/// }
/// let squares = squares.with_shape([2, 3])?;
/// assert_eq!(squares.as_slice(), [0, 1, 4, 9, 16, 25]);
///
/// let mut identity = TensorBuf::zeros([2, 2])?;
/// identity[0] = 1.0_f32;
/// identity[3] = 1.0;
/// let identity = identity.with_shape([2, 2])?;
/// # Ok::<(), tf_op_plugin::Error>(())
/// ```
pub struct TensorBuf<T> {
    pub(crate) elements: AlignedVec<T>,
}

impl<T: Element> TensorBuf<T> {
    /// Creates a buffer without elements.
    #[must_use]
    pub const fn new() -> Self {
        Self { elements: AlignedVec::new() }
    }

    /// Creates a buffer without elements, with memory for `capacity` of them.
    ///
    /// # Panics
    /// If there is no memory; the op then fails with `RESOURCE_EXHAUSTED`.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let mut buf = Self::new();
        buf.reserve(capacity, false);
        buf
    }

    /// Creates a buffer with a zero for each element of a shape.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an impossible shape, `RESOURCE_EXHAUSTED` if there is no memory.
    pub fn zeros(shape: impl AsRef<[i64]>) -> Result<Self> {
        let shape = shape.as_ref();
        let len = elements_of(shape)?;
        let mut buf = Self::new();
        ensure!(
            buf.elements.try_reserve(len, false),
            Error::resource_exhausted(format!(
                "no memory for {} of the shape {shape:?}; use smaller batches",
                T::DTYPE
            ))
        );
        buf.extend_exact(0..len, |_| T::default());
        Ok(buf)
    }

    fn reserve(&mut self, additional: usize, amortized: bool) {
        if !self.elements.try_reserve(additional, amortized) {
            raise(Error::resource_exhausted(format!(
                "no memory for {additional} more elements of {}; use smaller batches",
                T::DTYPE
            )));
        }
    }

    /// Adds `f` of each item of an iterator that knows its length.
    fn extend_exact<I: IntoIterator<IntoIter: ExactSizeIterator>>(
        &mut self,
        items: I,
        f: impl FnMut(I::Item) -> T,
    ) {
        let items = items.into_iter();
        self.reserve(items.len(), true);
        self.elements.extend(items, f);
    }

    /// Adds an element.
    ///
    /// # Panics
    /// If there is no memory; the op then fails with `RESOURCE_EXHAUSTED`.
    #[inline]
    pub fn push(&mut self, element: T) {
        self.reserve(1, true);
        self.elements.push(element);
    }

    /// Adds elements.
    ///
    /// # Panics
    /// If there is no memory; the op then fails with `RESOURCE_EXHAUSTED`.
    pub fn extend_from_slice(&mut self, elements: &[T]) {
        self.extend_exact(elements, |&element| element);
    }

    /// Adds `f` of each item. Faster than `extend` with an iterator, as the compiler can vectorize it.
    ///
    /// ```
    /// use tf_op_plugin::TensorBuf;
    ///
    /// let mut codes = TensorBuf::new();
    /// codes.extend_map(b"ab", |&byte| i32::from(byte));
    /// assert_eq!(codes[..], [97, 98]);
    /// ```
    ///
    /// # Panics
    /// If there is no memory; the op then fails with `RESOURCE_EXHAUSTED`.
    pub fn extend_map<U>(&mut self, items: &[U], f: impl FnMut(&U) -> T) {
        self.extend_exact(items, f);
    }

    /// Returns the tensor with this shape.
    ///
    /// # Errors
    /// `INTERNAL` if the shape has another number of elements.
    pub fn with_shape(self, shape: impl AsRef<[i64]>) -> Result<Tensor<T>> {
        let shape = shape.as_ref();
        let len = self.len();
        ensure!(
            elements_of(shape)? == len,
            Error::internal(format!("{len} elements do not have the shape {shape:?}"))
        );
        Ok(Tensor { storage: Storage::Own(self.elements, Dims::from_slice(shape)) })
    }
}

impl<T: Element> Default for TensorBuf<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Element> Deref for TensorBuf<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.elements.as_slice()
    }
}

impl<T: Element> DerefMut for TensorBuf<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.elements.as_mut_slice()
    }
}

impl<T: Element> Extend<T> for TensorBuf<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        let mut elements = elements.into_iter();
        loop {
            // Without a check of the capacity for each element.
            self.reserve(elements.size_hint().0, true);
            self.elements.extend(elements.by_ref(), |element| element);
            match elements.next() {
                Some(element) => self.push(element),
                None => return,
            }
        }
    }
}

impl<T: Element> FromIterator<T> for TensorBuf<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut buf = Self::new();
        buf.extend(elements);
        buf
    }
}

/// Creates a vector.
impl<T: Element> From<TensorBuf<T>> for Tensor<T> {
    fn from(buf: TensorBuf<T>) -> Self {
        let shape = Dims::from_elem(buf.len() as i64, 1);
        Self { storage: Storage::Own(buf.elements, shape) }
    }
}

impl<T: Element> fmt::Debug for TensorBuf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorBuf({} × {})", self.len(), T::DTYPE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tf_plugin_core::__private::boundary::catch;
    use tf_plugin_core::Code;

    #[test]
    fn rows_are_as_many_as_the_other_dimensions_say() {
        let rows = |shape: &[i64]| {
            let len = elements_of(shape).unwrap();
            let tensor = Tensor::new(shape, vec![0_u8; len]).unwrap();
            (tensor.rows().len(), tensor.rows().map(<[u8]>::len).max())
        };
        assert_eq!(rows(&[]), (1, Some(1)));
        assert_eq!(rows(&[3]), (1, Some(3)));
        assert_eq!(rows(&[0]), (1, Some(0)));
        assert_eq!(rows(&[2, 3, 4]), (6, Some(4)));
        assert_eq!(rows(&[3, 0]), (3, Some(0)));
        assert_eq!(rows(&[2, 3, 0]), (6, Some(0)));
        assert_eq!(rows(&[0, 3]), (0, None));
    }

    #[test]
    fn a_lack_of_memory_is_an_error() {
        let error =
            catch("op", || Ok(TensorBuf::<f64>::with_capacity(usize::MAX / 16))).unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted);
        assert!(error.to_string().contains("more elements of float64"), "{error}");
        let error = TensorBuf::<u8>::zeros([1 << 50]).unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted);
    }
}
