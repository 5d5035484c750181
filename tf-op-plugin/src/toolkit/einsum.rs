//! Equations of `Einsum`.

use super::broadcast::Strides;
use super::shape::{Shape, checked_count};
use tf_plugin_core::{Error, Result, ensure};

/// An equation such as `bqd,bkd->bqk` for tensors of given shapes: for each label its size, and the strides of the two
/// inputs and of the output along it.
///
/// A label that is repeated within a tensor (a diagonal) has the sum of the strides. A tensor without the label has a
/// stride of 0. Dimensions of `...` are labels, too. With one input, the strides of the second are 0.
///
/// ```
/// use tf_op_plugin::toolkit::einsum::Einsum;
///
/// let einsum = Einsum::new("bqd,bkd->bqk", &[&[2, 3, 8], &[2, 5, 8]])?;
/// assert_eq!(einsum.shape(), [2, 3, 5]);
/// // The label that the product sums over is in both inputs, and not in the output.
/// let inner = einsum.labels([true, true, false]);
/// assert_eq!((inner.len(), inner[0].len, inner[0].strides), (1, 8, [1, 1, 0]));
/// # Ok::<(), tf_op_plugin::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Einsum {
    shape: Shape,
    labels: Vec<Strides<3>>,
}

/// A dimension of a tensor: a letter, or one of `...`, counted from the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Letter(char),
    Ellipsis(usize),
}

/// Returns the labels of a tensor, for which `...` has `ellipsis` dimensions.
fn labels(term: &str, ellipsis: usize) -> Result<Vec<Label>> {
    let wrong = || {
        Error::invalid_argument(format!(
            "`{term}` is not a term of an einsum equation; write letters and at most one `...`"
        ))
    };
    let (before, after) = match term.split_once("...") {
        None => (term, None),
        Some((before, after)) => (before, Some(after)),
    };
    let letters = |text: &str| -> Result<Vec<Label>> {
        ensure!(text.chars().all(|one| one.is_ascii_alphabetic()), wrong());
        Ok(text.chars().map(Label::Letter).collect())
    };
    let mut all = letters(before)?;
    if let Some(after) = after {
        all.extend((0..ellipsis).rev().map(Label::Ellipsis));
        all.extend(letters(after)?);
    }
    Ok(all)
}

impl Einsum {
    /// Parses an equation of one or two inputs.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an invalid equation, or for shapes that do not fit it.
    pub fn new(equation: &str, shapes: &[&[usize]]) -> Result<Self> {
        let wrong = |why: &str| {
            Error::invalid_argument(format!("einsum `{equation}` of shapes {shapes:?}: {why}"))
        };
        let equation: String = equation.chars().filter(|one| !one.is_whitespace()).collect();
        let (inputs, output) =
            equation.split_once("->").ok_or_else(|| wrong("the equation has no `->`"))?;
        let terms: Vec<&str> = inputs.split(',').collect();
        ensure!(
            terms.len() == shapes.len() && (1..=2).contains(&terms.len()),
            wrong("the equation should have a term for each of one or two inputs")
        );
        let mut sizes: Vec<(Label, Strides<3>)> = Vec::new();
        let mut widest = 0;
        for (input, (&term, &shape)) in terms.iter().zip(shapes).enumerate() {
            let named = labels(term, 0)?.len();
            let has_ellipsis = term.contains("...");
            let rest = shape.len().checked_sub(named).filter(|&rest| rest == 0 || has_ellipsis);
            let rest = rest.ok_or_else(|| wrong("a term has not as many labels as its input"))?;
            widest = widest.max(rest);
            ensure!(checked_count(shape).is_some(), wrong("an input has too many elements"));
            let mut stride = 1_usize;
            for (label, &size) in labels(term, rest)?.into_iter().zip(shape).rev() {
                let seen = sizes.iter().position(|(other, _)| *other == label);
                let place = seen.unwrap_or_else(|| {
                    sizes.push((label, Strides { len: 1, strides: [0; 3] }));
                    sizes.len() - 1
                });
                let known = &mut sizes[place].1;
                let may_repeat = matches!(label, Label::Ellipsis(_));
                ensure!(
                    seen.is_none()
                        || known.len == size
                        || may_repeat && (size == 1 || known.len == 1),
                    wrong("a label has two sizes")
                );
                // In `...`, a size of 1 may be broadcast: it then has no stride.
                if size != 1 || !may_repeat {
                    known.strides[input] = known.strides[input].saturating_add(stride);
                }
                if size != 1 {
                    known.len = size;
                }
                // This saturates only for an empty tensor, over which nothing iterates.
                stride = stride.saturating_mul(size);
            }
        }
        let mut shape = Shape::new();
        let mut stride = 1_usize;
        let out = labels(output, if output.contains("...") { widest } else { 0 })?;
        for label in out.iter().rev() {
            let known = sizes.iter_mut().find(|(other, _)| other == label);
            let (_, known) =
                known.ok_or_else(|| wrong("the output has a label that no input has"))?;
            known.strides[2] = known.strides[2].saturating_add(stride);
            stride = stride.saturating_mul(known.len);
            shape.insert(0, known.len);
        }
        ensure!(checked_count(&shape).is_some(), wrong("the output has too many elements"));
        Ok(Self { shape, labels: sizes.into_iter().map(|(_, known)| known).collect() })
    }

    /// Returns the shape of the output.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns whether nothing is added up, because a size is 0: the output is empty or 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.iter().any(|label| label.len == 0)
    }

    /// Returns the labels that have a stride in exactly these of the first input, the second and the output:
    /// `[true, true, true]` are batches, `[true, true, false]` are the labels that a product sums over.
    #[must_use]
    pub fn labels(&self, steps: [bool; 3]) -> Vec<Strides<3>> {
        let has = |label: &&Strides<3>| label.strides.map(|stride| stride != 0) == steps;
        self.labels.iter().filter(has).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(equation: &str, shapes: &[&[usize]]) -> Option<Shape> {
        Einsum::new(equation, shapes).ok().map(|einsum| einsum.shape)
    }

    #[test]
    fn outputs_have_the_shape_that_the_equation_says() {
        assert_eq!(shape("ij,jk->ik", &[&[2, 3], &[3, 4]]), Some(vec![2, 4]));
        assert_eq!(shape("ij->ji", &[&[2, 3]]), Some(vec![3, 2]));
        assert_eq!(shape("ii->", &[&[3, 3]]), Some(vec![]));
        assert_eq!(shape("i -> ii", &[&[3]]), Some(vec![3, 3]));
        assert_eq!(
            shape("...ij,...jk->...ik", &[&[7, 1, 2, 3], &[5, 3, 4]]),
            Some(vec![7, 5, 2, 4])
        );
        assert_eq!(shape("a...->...a", &[&[2, 3, 4]]), Some(vec![3, 4, 2]));
        assert_eq!(shape("ij,kj->ik", &[&[2, 0], &[4, 0]]), Some(vec![2, 4]));
        assert_eq!(shape("ij,j->i", &[&[2, 1], &[1]]), Some(vec![2]));
        let large = 1 << 40;
        assert_eq!(shape("ijk->kji", &[&[0, large, large]]), Some(vec![large, large, 0]));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (equation, shapes) in [
            ("ij,jk->ik", &[&[2, 3][..], &[4, 4]][..]),
            ("ij,jk->ik", &[&[2, 1], &[4, 4]]),
            ("ij->ik", &[&[2, 3]]),
            ("ij", &[&[2, 3]]),
            ("i->i", &[&[2, 3]]),
            ("i,j,k->", &[&[2], &[2], &[2]]),
            ("i1->i", &[&[2, 3]]),
            ("......->", &[&[2]]),
            ("ii->i", &[&[1, 2]]),
            ("ab,ab->ab", &[&[1, 0], &[5, 0]]),
            ("i,j->ij", &[&[1 << 40], &[1 << 40]]),
        ] {
            assert!(shape(equation, shapes).is_none(), "{equation}");
        }
    }

    #[test]
    fn diagonals_step_along_both_axes() {
        let einsum = Einsum::new("ii->i", &[&[3, 3]]).unwrap();
        assert_eq!(einsum.labels([true, false, true]), [Strides { len: 3, strides: [4, 0, 1] }]);
    }
}
