//! Declared shapes: checks of inputs, and the inference of outputs' shapes.

use super::places::Places;
use super::spec::{ArgSpec, ArgType, Dim, Repeat};
use crate::kernel::{ShapeHandle, ShapeInferenceContext};
use core::fmt::{self, Write as _};
use core::ops::Range;
use smallvec::SmallVec;
use tf_plugin_core::{Error, Result, ensure};

/// Whether an argument is an input or an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// A mistake of the caller.
    Input,
    /// A mistake of the op.
    Output,
}

/// The lengths of named dimensions, as those arguments have them that were checked before.
#[derive(Debug, Default)]
pub(super) struct Known {
    names: SmallVec<[KnownName; 4]>,
    lens: SmallVec<[i64; 8]>,
}

#[derive(Debug)]
struct KnownName {
    name: &'static str,
    /// Its lengths in `lens`.
    range: Range<usize>,
    /// The argument that had it first.
    first: &'static str,
}

impl Known {
    /// Checks the shape of a tensor against the declared one of its argument.
    pub(super) fn check(&mut self, side: Side, arg: &ArgSpec, shape: &[i64]) -> Result<()> {
        let Some(dims) = arg.shape else { return Ok(()) };
        // What most ops declare: without the search for `..`, which small calls notice.
        if let &[Dim::Rest(name)] = dims {
            return match self.note(name, shape, arg.name) {
                None => Ok(()),
                Some((there, first)) => {
                    Err(mismatch(side, arg, dims, shape, Some((name, there, first))))
                }
            };
        }
        let rest =
            rest_len(dims, shape.len()).ok_or_else(|| mismatch(side, arg, dims, shape, None))?;
        let mut at = 0;
        for dim in dims {
            let len = if matches!(dim, Dim::Rest(_)) { rest } else { 1 };
            let here = &shape[at..at + len];
            at += len;
            let name = match *dim {
                Dim::Any => continue,
                Dim::Fixed(fixed) => {
                    ensure!(here == [fixed], mismatch(side, arg, dims, shape, None));
                    continue;
                }
                Dim::Named(name) | Dim::Rest(name) => name,
            };
            if let Some((there, first)) = self.note(name, here, arg.name) {
                return Err(mismatch(side, arg, dims, shape, Some((name, there, first))));
            }
        }
        Ok(())
    }

    /// Notes the lengths of a name. If it has others already, returns those and the argument that had them first.
    #[inline]
    fn note(
        &mut self,
        name: &'static str,
        here: &[i64],
        arg: &'static str,
    ) -> Option<(&[i64], &'static str)> {
        // One literal is mostly at one address.
        let is_it = |known: &KnownName| core::ptr::eq(known.name, name) || known.name == name;
        if let Some(at) = self.names.iter().position(is_it) {
            let known = &self.names[at];
            let there = &self.lens[known.range.clone()];
            return if there == here { None } else { Some((there, known.first)) };
        }
        let start = self.lens.len();
        self.lens.extend_from_slice(here);
        let range = start..self.lens.len();
        self.names.push(KnownName { name, range, first: arg });
        None
    }
}

/// Returns the number of dimensions for the `..` of a declared shape, 0 if there is none; `None` if the rank does not fit.
fn rest_len(dims: &[Dim], rank: usize) -> Option<usize> {
    match dims.iter().filter(|dim| matches!(dim, Dim::Rest(_))).count() {
        0 => (dims.len() == rank).then_some(0),
        _ => rank.checked_sub(dims.len() - 1),
    }
}

#[cold]
fn mismatch(
    side: Side,
    arg: &ArgSpec,
    dims: &[Dim],
    shape: &[i64],
    other: Option<(&str, &[i64], &str)>,
) -> Error {
    let what = if side == Side::Input { "input" } else { "output" };
    let mut text =
        format!("{what} `{}` has the shape {shape:?}; it should be {}", arg.name, Declared(dims));
    if let Some((name, there, first)) = other {
        let is_rest = dims.iter().any(|dim| matches!(dim, Dim::Rest(rest) if *rest == name));
        let there = match there {
            [only] if !is_rest => only.to_string(),
            _ => format!("{there:?}"),
        };
        let _ = write!(text, ", where `{name}` is {there} in `{first}`");
    }
    match side {
        Side::Input => Error::invalid_argument(text),
        Side::Output => Error::internal(text),
    }
}

/// A declared shape, as the author has written it.
pub(super) struct Declared<'d>(pub(super) &'d [Dim]);

impl fmt::Display for Declared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        for (index, dim) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            match dim {
                Dim::Fixed(len) => write!(f, "{len}")?,
                Dim::Named(name) => f.write_str(name)?,
                Dim::Any => f.write_char('_')?,
                Dim::Rest(name) => write!(f, "..{name}")?,
            }
        }
        f.write_char(']')
    }
}

/// Sets the shapes of the outputs as far as the declared shapes say them, and checks those of the inputs.
///
/// Outputs behind a list whose length is not known stay unknown.
pub(super) fn infer(
    shapes: &mut ShapeInferenceContext<'_>,
    (inputs, input_types): (&[ArgSpec], &[ArgType]),
    (outputs, output_types): (&[ArgSpec], &[ArgType]),
) -> Result<()> {
    shapes.set_unknown()?;
    let mut known = Vec::new();
    let places = Places::of_inputs(inputs, input_types, shapes.input_count());
    for ((arg, ty), range) in inputs.iter().zip(input_types).zip(&places.ranges) {
        let (Some(dims), Some(range)) = (arg.dims(ty), range.clone()) else { continue };
        // The shape of a ragged input is that of its values.
        let shaped = if ty.repeat == Repeat::Ragged { 1 } else { range.len() };
        range.take(shaped).try_for_each(|at| read(shapes, arg, dims, at, &mut known))?;
    }
    let mut index = 0;
    for (arg, ty) in outputs.iter().zip(output_types) {
        let (count, shaped) = match ty.repeat {
            Repeat::One => (1, 1),
            Repeat::Ragged => {
                let row_splits = shapes.unknown_vector()?;
                shapes.set_output(index + 1, &row_splits)?;
                (2, 1)
            }
            Repeat::List | Repeat::Optional => match places.length(arg) {
                Some(length) => (length, length),
                None => break,
            },
        };
        if let Some(dims) = arg.dims(ty) {
            (index..index + shaped).try_for_each(|at| write(shapes, dims, at, &known))?;
        }
        index += count;
    }
    Ok(())
}

/// A name with its dimensions, and the first input that has it.
type Inferred<'c> = (&'static str, ShapeHandle<'c>, &'static str);

/// Notes the named dimensions of an input.
fn read<'c>(
    shapes: &ShapeInferenceContext<'c>,
    arg: &ArgSpec,
    dims: &'static [Dim],
    index: usize,
    known: &mut Vec<Inferred<'c>>,
) -> Result<()> {
    let shape = shapes.input(index)?;
    let Some(rank) = shapes.rank(&shape) else { return Ok(()) };
    let lens = (0..rank as i64).map(|at| shapes.dim(&shape, at)).collect::<Result<Vec<_>>>()?;
    let shown: Vec<i64> = lens.iter().map(|len| len.unwrap_or(-1)).collect();
    let rest =
        rest_len(dims, rank).ok_or_else(|| mismatch(Side::Input, arg, dims, &shown, None))?;
    let mut at = 0;
    for dim in dims {
        let len = if matches!(dim, Dim::Rest(_)) { rest } else { 1 };
        let (start, end) = (at, at + len);
        at = end;
        let name = match *dim {
            Dim::Any => continue,
            Dim::Fixed(fixed) => {
                ensure!(
                    lens[start].is_none_or(|len| len == fixed),
                    mismatch(Side::Input, arg, dims, &shown, None)
                );
                continue;
            }
            Dim::Named(name) | Dim::Rest(name) => name,
        };
        match known.iter().find(|(other, ..)| *other == name) {
            None => {
                let part = shapes.subshape(&shape, start as i64, end as i64)?;
                known.push((name, part, arg.name));
            }
            Some((_, there, first)) => {
                let other = (0..shapes.rank(there).unwrap_or(0) as i64)
                    .map(|at| shapes.dim(there, at))
                    .collect::<Result<Vec<_>>>()?;
                let fits = other.len() == len
                    && other
                        .iter()
                        .zip(&lens[start..end])
                        .all(|(a, b)| a.is_none() || b.is_none() || a == b);
                ensure!(fits, {
                    let there: Vec<i64> = other.iter().map(|len| len.unwrap_or(-1)).collect();
                    mismatch(Side::Input, arg, dims, &shown, Some((name, &there, first)))
                });
            }
        }
    }
    Ok(())
}

/// Sets the shape of an output, if its rank is known.
fn write<'c>(
    shapes: &mut ShapeInferenceContext<'c>,
    dims: &'static [Dim],
    index: usize,
    known: &[Inferred<'c>],
) -> Result<()> {
    let mut shape = shapes.scalar()?;
    for dim in dims {
        let found = match *dim {
            Dim::Named(name) | Dim::Rest(name) => known.iter().find(|(other, ..)| *other == name),
            Dim::Fixed(_) | Dim::Any => None,
        };
        shape = match (found, dim) {
            (Some((_, part, _)), _) => shapes.concatenate(&shape, part)?,
            (None, Dim::Rest(_)) => return Ok(()),
            (None, Dim::Fixed(len)) => {
                let len = usize::try_from(*len).map_err(Error::internal)?;
                shapes.concatenate(&shape, &shapes.vector(len)?)?
            }
            (None, _) => shapes.concatenate(&shape, &shapes.unknown_vector()?)?,
        };
    }
    shapes.set_output(index, &shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tf_plugin_core::Code;

    const fn arg(name: &'static str, shape: &'static [Dim]) -> ArgSpec {
        ArgSpec { name, count: "", shape: Some(shape) }
    }

    #[test]
    fn shapes_that_differ_from_the_declared_ones_are_named() {
        const ARGS: &[ArgSpec] = &[
            arg("x", &[Dim::Rest("batch"), Dim::Named("n"), Dim::Any]),
            arg("y", &[Dim::Rest("batch"), Dim::Fixed(3), Dim::Named("n")]),
        ];
        let check = |x: &[i64], y: &[i64]| {
            let mut known = Known::default();
            known.check(Side::Input, &ARGS[0], x)?;
            known.check(Side::Input, &ARGS[1], y)
        };
        let check = |x: &[i64], y: &[i64]| check(x, y).map_err(|error| error.to_string());
        assert_eq!(check(&[4, 5], &[3, 4]), Ok(()));
        assert_eq!(check(&[7, 8, 4, 5], &[7, 8, 3, 4]), Ok(()));
        assert_eq!(check(&[0, 0], &[3, 0]), Ok(()));
        for (x, y, text) in [
            (&[4][..], &[3, 4][..], "input `x` has the shape [4]; it should be [..batch, n, _]"),
            (&[4, 5], &[2, 4], "input `y` has the shape [2, 4]; it should be [..batch, 3, n]"),
            (
                &[4, 5],
                &[3, 5],
                "input `y` has the shape [3, 5]; it should be [..batch, 3, n], where `n` is 4 in `x`",
            ),
            (
                &[2, 4, 5],
                &[3, 4],
                "input `y` has the shape [3, 4]; it should be [..batch, 3, n], where `batch` is [2] in `x`",
            ),
        ] {
            let error = check(x, y).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn an_output_that_is_not_as_declared_is_a_mistake_of_the_op() {
        let [x, y, z] = [
            arg("x", &[Dim::Rest("s")]),
            arg("y", &[Dim::Rest("s"), Dim::Named("k")]),
            arg("z", &[Dim::Named("k")]),
        ];
        let mut known = Known::default();
        known.check(Side::Input, &x, &[2, 3]).unwrap();
        known.check(Side::Output, &y, &[2, 3, 4]).unwrap();
        known.check(Side::Output, &z, &[4]).unwrap();
        let error = known.check(Side::Output, &y, &[2, 4]).unwrap_err();
        assert_eq!(error.code(), Code::Internal);
        let text =
            "output `y` has the shape [2, 4]; it should be [..s, k], where `s` is [2, 3] in `x`";
        assert!(error.to_string().contains(text), "{error}");
        let error = known.check(Side::Output, &z, &[5]).unwrap_err();
        assert!(error.to_string().contains("it should be [k], where `k` is 4 in `y`"), "{error}");
    }
}
