//! The Rust types of inputs and outputs.

use super::context::OpContext;
use super::spec::{ArgType, Dim, Repeat};
use crate::dtype::DType;
use crate::kernel::Element;
use crate::ragged::{Ragged, Values};
use crate::strings::{StringStorage, Strings, StringsBuf};
use crate::tensor::{Place, Role, Storage, Tensor, TensorBuf};
use core::ops::Range;
use tf_plugin_core::{Error, Result, ensure};

/// A Rust type of an input.
///
/// | Rust | In TensorFlow |
/// |---|---|
/// | [`Tensor<T>`](Tensor) | a tensor of numbers or booleans |
/// | [`Strings`] | a tensor of strings |
/// | `T`, such as `f32`, `i64`, `bool` | a tensor without dimensions |
/// | `String` | a string without dimensions, which has to be UTF-8 |
/// | [`Ragged<Tensor<T>>`](Ragged), `Ragged<Strings>` | two tensors: values and row splits |
/// | `Vec<Tensor<T>>`, `Vec<Strings>` | a list of tensors of one type |
/// | `Option<Tensor<T>>`, `Option<Strings>` | a list of none or one; in Python an argument that may be `None` |
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of an op's input",
    note = "write `Tensor<f32>`, `Strings`, a number's type for a scalar, `Ragged<...>`, or a `Vec` or `Option` of a tensor"
)]
pub trait InputArg: Shaped {
    #[doc(hidden)]
    const TYPE: ArgType;
    #[doc(hidden)]
    fn read(context: &OpContext<'_>, name: &'static str, range: Range<usize>) -> Result<Self>;
}

/// A Rust type of an output.
///
/// | Rust | In TensorFlow |
/// |---|---|
/// | [`Tensor<T>`](Tensor) | a tensor of numbers or booleans |
/// | [`TensorBuf<T>`](TensorBuf), [`StringsBuf`] | a vector |
/// | [`Strings`] | a tensor of strings |
/// | `T`, such as `f32`, `i64`, `bool`, and `String` | a tensor without dimensions |
/// | [`Ragged<Tensor<T>>`](Ragged), `Ragged<Strings>` | two tensors: values and row splits |
/// | `Vec<Tensor<T>>`, `Vec<Strings>` | a list of tensors of one type |
/// | `Option<Tensor<T>>`, `Option<Strings>` | a list of none or one; in Python a tensor or `None` |
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of an op's output",
    note = "write `Tensor<f32>`, `Strings`, a number's type for a scalar, `Ragged<...>`, or a `Vec` or `Option` of a tensor"
)]
pub trait OutputArg: Shaped {
    #[doc(hidden)]
    const TYPE: ArgType;
    #[doc(hidden)]
    fn write(self, context: &OpContext<'_>, range: Range<usize>) -> Result<()>;
}

/// An argument with the shapes that a declaration is about.
#[doc(hidden)]
pub trait Shaped: Sized {
    /// Calls `visit` with the shape of each tensor: of a ragged one, that of its values.
    fn each_shape(&self, visit: &mut dyn FnMut(&[i64]) -> Result<()>) -> Result<()>;
}

macro_rules! shaped {
    ($($type:ty $(, $param:ident: $bound:path)?; |$arg:pat_param| $shape:expr;)*) => {$(
        impl$(<$param: $bound>)? Shaped for $type {
            fn each_shape(&self, visit: &mut dyn FnMut(&[i64]) -> Result<()>) -> Result<()> {
                let $arg = self;
                visit($shape)
            }
        }
    )*};
}

shaped! {
    Tensor<T>, T: Element; |tensor| tensor.shape();
    TensorBuf<T>, T: Element; |buf| &[buf.len() as i64];
    Strings; |strings| strings.shape();
    StringsBuf; |buf| &[buf.len() as i64];
    T, T: Element; |_| &[];
    String; |_| &[];
}

impl<V: Shaped> Shaped for Ragged<V> {
    fn each_shape(&self, visit: &mut dyn FnMut(&[i64]) -> Result<()>) -> Result<()> {
        self.values.each_shape(visit)
    }
}

impl<V: Shaped> Shaped for Vec<V> {
    fn each_shape(&self, visit: &mut dyn FnMut(&[i64]) -> Result<()>) -> Result<()> {
        self.iter().try_for_each(|one| one.each_shape(visit))
    }
}

impl<V: Shaped> Shaped for Option<V> {
    fn each_shape(&self, visit: &mut dyn FnMut(&[i64]) -> Result<()>) -> Result<()> {
        self.iter().try_for_each(|one| one.each_shape(visit))
    }
}

/// A tensor of any shape.
const fn one(dtype: DType) -> ArgType {
    ArgType { dtype, repeat: Repeat::One, shape: None }
}

const fn scalar(dtype: DType) -> ArgType {
    ArgType { shape: Some(&[]), ..one(dtype) }
}

const fn vector(dtype: DType) -> ArgType {
    ArgType { shape: Some(&[Dim::Any]), ..one(dtype) }
}

impl<T: Element> InputArg for Tensor<T> {
    const TYPE: ArgType = one(T::DTYPE);

    fn read(context: &OpContext<'_>, _: &'static str, range: Range<usize>) -> Result<Self> {
        let run = context.run()?;
        let role = Role { run: run.identity(), place: Place::Input(range.start) };
        Ok(Self { storage: Storage::Host(run.input(range.start)?, role) })
    }
}

impl<T: Element> OutputArg for Tensor<T> {
    const TYPE: ArgType = one(T::DTYPE);

    fn write(self, context: &OpContext<'_>, range: Range<usize>) -> Result<()> {
        let run = context.run()?;
        match self.storage {
            Storage::Host(tensor, role) => {
                let Some(Place::Output(output)) = role.place_in(run) else {
                    return run.pass(range.start, &tensor);
                };
                ensure!(
                    output == range.start,
                    Error::internal(format!(
                        "`reuse` was called for output {output}, not {}",
                        range.start
                    ))
                );
                Ok(())
            }
            Storage::Own(elements, shape) => run.set_output(range.start, &shape, elements),
        }
    }
}

impl<T: Element> OutputArg for TensorBuf<T> {
    const TYPE: ArgType = vector(T::DTYPE);

    fn write(self, context: &OpContext<'_>, range: Range<usize>) -> Result<()> {
        Tensor::from(self).write(context, range)
    }
}

impl InputArg for Strings {
    const TYPE: ArgType = one(DType::String);

    fn read(context: &OpContext<'_>, name: &'static str, range: Range<usize>) -> Result<Self> {
        Ok(Self { storage: StringStorage::Host(context.run()?.strings(range.start)?, name) })
    }
}

impl OutputArg for Strings {
    const TYPE: ArgType = one(DType::String);

    fn write(self, context: &OpContext<'_>, range: Range<usize>) -> Result<()> {
        match self.storage {
            StringStorage::Host(strings, _) => context.run()?.pass_strings(range.start, &strings),
            StringStorage::Own(strings, shape) => {
                context.run()?.set_strings(range.start, &shape, strings.strings)
            }
        }
    }
}

impl OutputArg for StringsBuf {
    const TYPE: ArgType = vector(DType::String);

    fn write(self, context: &OpContext<'_>, range: Range<usize>) -> Result<()> {
        Strings::from(self).write(context, range)
    }
}

fn check_scalar(shape: &[i64]) -> Result<()> {
    let error = || Error::invalid_argument(format!("expected a scalar, got the shape {shape:?}"));
    ensure!(shape.is_empty(), error());
    Ok(())
}

impl<T: Element> InputArg for T {
    const TYPE: ArgType = scalar(T::DTYPE);

    fn read(context: &OpContext<'_>, name: &'static str, range: Range<usize>) -> Result<Self> {
        let tensor = Tensor::<T>::read(context, name, range)?;
        check_scalar(tensor.shape())?;
        tensor.only()
    }
}

impl<T: Element> OutputArg for T {
    const TYPE: ArgType = scalar(T::DTYPE);

    fn write(self, context: &OpContext<'_>, range: Range<usize>) -> Result<()> {
        Tensor::scalar(self).write(context, range)
    }
}

impl InputArg for String {
    const TYPE: ArgType = scalar(DType::String);

    fn read(context: &OpContext<'_>, name: &'static str, range: Range<usize>) -> Result<Self> {
        let strings = Strings::read(context, name, range)?;
        check_scalar(strings.shape())?;
        strings.str(0).map(Self::from)
    }
}

impl OutputArg for String {
    const TYPE: ArgType = scalar(DType::String);

    fn write(self, context: &OpContext<'_>, range: Range<usize>) -> Result<()> {
        Strings::scalar(self).write(context, range)
    }
}

const fn repeated(arg: ArgType, repeat: Repeat) -> ArgType {
    assert!(matches!(arg.repeat, Repeat::One), "a list of lists is not a type of an argument");
    ArgType { repeat, ..arg }
}

impl<V: InputArg + Values> InputArg for Ragged<V> {
    const TYPE: ArgType = repeated(V::TYPE, Repeat::Ragged);

    fn read(context: &OpContext<'_>, name: &'static str, range: Range<usize>) -> Result<Self> {
        let [values, splits] = [range.start, range.start + 1];
        Self::new(
            V::read(context, name, values..splits)?,
            Tensor::read(context, name, splits..splits + 1)?,
        )
    }
}

impl<V: OutputArg> OutputArg for Ragged<V> {
    const TYPE: ArgType = repeated(V::TYPE, Repeat::Ragged);

    fn write(self, context: &OpContext<'_>, range: Range<usize>) -> Result<()> {
        let [values, splits] = [range.start, range.start + 1];
        self.values.write(context, values..splits)?;
        self.row_splits.write(context, splits..splits + 1)
    }
}

impl<V: InputArg> InputArg for Vec<V> {
    const TYPE: ArgType = repeated(V::TYPE, Repeat::List);

    fn read(context: &OpContext<'_>, name: &'static str, range: Range<usize>) -> Result<Self> {
        range.map(|index| V::read(context, name, index..index + 1)).collect()
    }
}

impl<V: OutputArg> OutputArg for Vec<V> {
    const TYPE: ArgType = repeated(V::TYPE, Repeat::List);

    fn write(self, context: &OpContext<'_>, range: Range<usize>) -> Result<()> {
        ensure!(
            self.len() == range.len(),
            Error::internal(format!(
                "the op returned {} tensors, and the node has {}",
                self.len(),
                range.len()
            ))
        );
        self.into_iter()
            .zip(range)
            .try_for_each(|(one, index)| one.write(context, index..index + 1))
    }
}

impl<V: InputArg> InputArg for Option<V> {
    const TYPE: ArgType = repeated(V::TYPE, Repeat::Optional);

    fn read(context: &OpContext<'_>, name: &'static str, range: Range<usize>) -> Result<Self> {
        match range.len() {
            0 => Ok(None),
            1 => V::read(context, name, range).map(Some),
            count => {
                Err(Error::invalid_argument(format!("expected none or one tensor, got {count}")))
            }
        }
    }
}

impl<V: OutputArg> OutputArg for Option<V> {
    const TYPE: ArgType = repeated(V::TYPE, Repeat::Optional);

    fn write(self, context: &OpContext<'_>, range: Range<usize>) -> Result<()> {
        match (self, range.len()) {
            // Nobody wants it.
            (_, 0) => Ok(()),
            (Some(one), 1) => one.write(context, range),
            (None, 1) => Err(Error::internal("the op returned none, and the node has one tensor")),
            (_, count) => Err(Error::invalid_argument(format!(
                "the node has {count} tensors; an optional output has at most one"
            ))),
        }
    }
}

/// The inputs of an op: one [`InputArg`], or a tuple of up to twelve.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of an op's inputs",
    note = "write `Tensor<f32>`, `Strings`, a number's type for a scalar, `Ragged<...>`, a `Vec` or `Option` of a tensor, or a \
            tuple of up to twelve of these"
)]
pub trait Inputs: Sized {
    #[doc(hidden)]
    const TYPES: &'static [ArgType];
    /// Reads the inputs; each has its range of the node's inputs.
    #[doc(hidden)]
    fn read_all(context: &OpContext<'_>, ranges: &[Range<usize>]) -> Result<Self>;
    /// Calls `visit` with the shape of each tensor, and the index of its input.
    #[doc(hidden)]
    fn each_shape(&self, visit: &mut dyn FnMut(usize, &[i64]) -> Result<()>) -> Result<()>;
}

/// The outputs of an op: one [`OutputArg`], or a tuple of up to twelve.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of an op's outputs",
    note = "write `Tensor<f32>`, `Strings`, a number's type for a scalar, `Ragged<...>`, a `Vec` or `Option` of a tensor, or a \
            tuple of up to twelve of these"
)]
pub trait Outputs: Sized {
    #[doc(hidden)]
    const TYPES: &'static [ArgType];
    #[doc(hidden)]
    fn write_all(self, context: &OpContext<'_>, ranges: &[Range<usize>]) -> Result<()>;
    /// Calls `visit` with the shape of each tensor, and the index of its output.
    #[doc(hidden)]
    fn each_shape(&self, visit: &mut dyn FnMut(usize, &[i64]) -> Result<()>) -> Result<()>;
}

fn range(ranges: &[Range<usize>], index: usize) -> Result<Range<usize>> {
    ranges.get(index).cloned().ok_or_else(|| Error::internal(format!("no argument {index}")))
}

impl<A: InputArg> Inputs for A {
    const TYPES: &'static [ArgType] = &[A::TYPE];

    fn read_all(context: &OpContext<'_>, ranges: &[Range<usize>]) -> Result<Self> {
        context.named_input(0, |name| A::read(context, name, range(ranges, 0)?))
    }

    fn each_shape(&self, visit: &mut dyn FnMut(usize, &[i64]) -> Result<()>) -> Result<()> {
        Shaped::each_shape(self, &mut |shape| visit(0, shape))
    }
}

impl<A: OutputArg> Outputs for A {
    const TYPES: &'static [ArgType] = &[A::TYPE];

    fn write_all(self, context: &OpContext<'_>, ranges: &[Range<usize>]) -> Result<()> {
        context.named_output(0, OutputArg::write(self, context, range(ranges, 0)?))
    }

    fn each_shape(&self, visit: &mut dyn FnMut(usize, &[i64]) -> Result<()>) -> Result<()> {
        Shaped::each_shape(self, &mut |shape| visit(0, shape))
    }
}

macro_rules! tuples {
    ($($($name:ident $index:tt)*;)*) => {$(
        impl<$($name: InputArg),*> Inputs for ($($name,)*) {
            const TYPES: &'static [ArgType] = &[$($name::TYPE),*];

            #[allow(unused_variables, reason = "for an op without inputs")]
            fn read_all(context: &OpContext<'_>, ranges: &[Range<usize>]) -> Result<Self> {
                Ok(($(context.named_input($index, |name| $name::read(context, name, range(ranges, $index)?))?,)*))
            }

            #[allow(unused_variables, reason = "for an op without inputs")]
            fn each_shape(&self, visit: &mut dyn FnMut(usize, &[i64]) -> Result<()>) -> Result<()> {
                $(Shaped::each_shape(&self.$index, &mut |shape| visit($index, shape))?;)*
                Ok(())
            }
        }

        impl<$($name: OutputArg),*> Outputs for ($($name,)*) {
            const TYPES: &'static [ArgType] = &[$($name::TYPE),*];

            #[allow(unused_variables, reason = "for an op without outputs")]
            fn write_all(self, context: &OpContext<'_>, ranges: &[Range<usize>]) -> Result<()> {
                $(context.named_output($index, OutputArg::write(self.$index, context, range(ranges, $index)?))?;)*
                Ok(())
            }

            #[allow(unused_variables, reason = "for an op without outputs")]
            fn each_shape(&self, visit: &mut dyn FnMut(usize, &[i64]) -> Result<()>) -> Result<()> {
                $(Shaped::each_shape(&self.$index, &mut |shape| visit($index, shape))?;)*
                Ok(())
            }
        }
    )*};
}

tuples! {
    ;
    A 0;
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
    A 0 B 1 C 2 D 3 E 4;
    A 0 B 1 C 2 D 3 E 4 F 5;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11;
}
