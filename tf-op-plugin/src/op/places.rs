//! Which tensors of a node belong to which input, while shapes are inferred.
//!
//! The host then tells neither the node's attributes nor which tensors a list has, but the number of all tensors. Lists with a
//! common attribute have the same length, and an optional input has one tensor at most.

use super::spec::{ArgSpec, ArgType, Repeat};
use core::ops::Range;

/// The tensors of each input, as far as the number of tensors says them.
#[derive(Debug)]
pub(super) struct Places {
    /// The tensors of each input; `None` if they may be these or those.
    pub(super) ranges: Vec<Option<Range<usize>>>,
    lists: Vec<Lists>,
    /// The length of each of `lists`, if it is known.
    lengths: Option<Vec<usize>>,
}

/// Lists of the same length.
#[derive(Debug)]
struct Lists {
    /// The attribute with the length.
    attribute: String,
    /// How many inputs have it.
    inputs: usize,
    is_optional: bool,
}

const fn is_list(ty: &ArgType) -> bool {
    matches!(ty.repeat, Repeat::List | Repeat::Optional)
}

/// Returns the number of tensors of an argument that is not a list.
const fn size(ty: &ArgType) -> usize {
    if matches!(ty.repeat, Repeat::Ragged) { 2 } else { 1 }
}

impl Places {
    /// Finds the tensors of the inputs of a node with this number of tensors.
    pub(super) fn of_inputs(args: &[ArgSpec], types: &[ArgType], tensors: usize) -> Self {
        let mut lists: Vec<Lists> = Vec::new();
        let mut rest = tensors;
        for (arg, ty) in args.iter().zip(types) {
            if !is_list(ty) {
                rest = rest.saturating_sub(size(ty));
                continue;
            }
            let (attribute, is_optional) = (arg.count_attribute(), ty.repeat == Repeat::Optional);
            match lists.iter_mut().find(|one| one.attribute == attribute) {
                Some(one) => {
                    one.inputs += 1;
                    one.is_optional |= is_optional;
                }
                None => lists.push(Lists { attribute, inputs: 1, is_optional }),
            }
        }
        let mut found = Vec::new();
        divide(&lists, rest, &mut Vec::new(), &mut found);
        let lengths = if found.len() == 1 { found.pop() } else { None };
        let mut places = Self { ranges: vec![None; args.len()], lists, lengths };
        let counts: Vec<Option<usize>> = args
            .iter()
            .zip(types)
            .map(|(arg, ty)| if is_list(ty) { places.length(arg) } else { Some(size(ty)) })
            .collect();
        // From the first on, and from the last, up to a list of unknown length.
        let mut start = 0;
        for (range, count) in places.ranges.iter_mut().zip(&counts) {
            let Some(count) = count else { break };
            *range = Some(start..start + count);
            start += count;
        }
        let mut end = tensors;
        for (range, count) in places.ranges.iter_mut().zip(&counts).rev() {
            let (None, Some(count)) = (&range, count) else { break };
            *range = Some(end.saturating_sub(*count)..end);
            end = end.saturating_sub(*count);
        }
        places
    }

    /// Returns the length of a list, of inputs or outputs, that an attribute of inputs counts.
    pub(super) fn length(&self, arg: &ArgSpec) -> Option<usize> {
        let attribute = arg.count_attribute();
        let at = self.lists.iter().position(|one| one.attribute == attribute)?;
        self.lengths.as_ref()?.get(at).copied()
    }
}

/// Finds lengths with which the lists have `rest` tensors in all. Ends after the second possibility.
fn divide(lists: &[Lists], rest: usize, lengths: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
    let Some((first, others)) = lists.split_first() else {
        if rest == 0 {
            found.push(lengths.clone());
        }
        return;
    };
    let most = rest / first.inputs;
    let most = if first.is_optional { most.min(1) } else { most };
    // The last one has all that is left.
    let least = if others.is_empty() { most } else { 0 };
    for length in least..=most {
        lengths.push(length);
        divide(others, rest - length * first.inputs, lengths, found);
        lengths.pop();
        if found.len() > 1 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    /// Returns the ranges of inputs that have `1`: one tensor, `2`: a ragged one, `?`: an optional one, and else a list that
    /// this letter counts.
    fn ranges(inputs: &[&'static str], tensors: usize) -> Vec<Option<Range<usize>>> {
        let args = inputs.iter().map(|&count| {
            let count = if count == "?" { "" } else { count };
            ArgSpec { name: "x", count, shape: None }
        });
        let types = inputs.iter().map(|&count| {
            let repeat = match count {
                "1" => Repeat::One,
                "2" => Repeat::Ragged,
                "?" => Repeat::Optional,
                _ => Repeat::List,
            };
            ArgType { dtype: DType::Float32, repeat, shape: None }
        });
        let (args, types): (Vec<_>, Vec<_>) = (args.collect(), types.collect());
        Places::of_inputs(&args, &types, tensors).ranges
    }

    #[test]
    fn one_list_has_what_is_left() {
        assert_eq!(ranges(&["1", "N", "2"], 6), [Some(0..1), Some(1..4), Some(4..6)]);
        assert_eq!(ranges(&["1", "?"], 1), [Some(0..1), Some(1..1)]);
    }

    #[test]
    fn lists_of_one_length_share_it() {
        assert_eq!(ranges(&["N", "1", "N"], 7), [Some(0..3), Some(3..4), Some(4..7)]);
        // An optional tensor is the odd one.
        assert_eq!(ranges(&["N", "N", "?"], 5), [Some(0..2), Some(2..4), Some(4..5)]);
        assert_eq!(ranges(&["N", "N", "?"], 4), [Some(0..2), Some(2..4), Some(4..4)]);
    }

    #[test]
    fn lists_of_other_lengths_hide_what_is_between_them() {
        let all = ranges(&["1", "N", "1", "M", "2"], 7);
        assert_eq!(all, [Some(0..1), None, None, None, Some(5..7)]);
        assert_eq!(ranges(&["N", "?", "1"], 3), [None, None, Some(2..3)]);
        // There is one way to have no tensors.
        assert_eq!(ranges(&["N", "M", "1"], 1), [Some(0..0), Some(0..0), Some(0..1)]);
    }
}
