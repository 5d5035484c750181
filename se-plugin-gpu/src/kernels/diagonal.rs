//! Matrices and their diagonals: `MatrixDiagV3`, `MatrixSetDiagV3` and `MatrixDiagPartV3`.

use super::*;

/// The ops, with their numbers in `shaders/diagonal.comp`.
const MAKE: u32 = 0;
const SET: u32 = 1;
const PART: u32 = 2;

/// Whether the rows of the diagonals above and below the main one are at the left of their place.
type Align = [bool; 2];

fn align(construction: &OpKernelConstruction<'_>) -> Result<Align> {
    Ok(match &*construction.attr::<String>("align")? {
        "LEFT_RIGHT" => [true, false],
        "RIGHT_LEFT" => [false, true],
        "LEFT_LEFT" => [true, true],
        "RIGHT_RIGHT" => [false, false],
        other => {
            return Err(wrong(format!(
                "align must be LEFT_RIGHT, RIGHT_LEFT, LEFT_LEFT or RIGHT_RIGHT, and not {other}"
            )));
        }
    })
}

/// The diagonals from one to another, by their distance above the main one.
#[derive(Clone, Copy)]
struct Diagonals {
    lower: i64,
    upper: i64,
}

impl Diagonals {
    /// Reads them from a host input, which has one number or two.
    fn of(context: &Run<'_>, index: usize) -> Result<Self> {
        match context.host_integers(index)?[..] {
            [only] => Ok(Self { lower: only, upper: only }),
            [lower, upper] if lower <= upper => Ok(Self { lower, upper }),
            [lower, upper] => Err(wrong(format!(
                "lower_diag_index must not be larger than upper_diag_index: {lower} > {upper}"
            ))),
            _ => Err(wrong("diag_index must have one or two elements")),
        }
    }

    fn count(self) -> usize {
        (self.upper - self.lower + 1) as usize
    }

    /// Returns the length of the longest one in a matrix.
    fn longest(self, [rows, columns]: [usize; 2]) -> Result<usize> {
        let is_inside = |diagonal: i64| -(rows as i64) < diagonal && diagonal < columns as i64;
        // Of an empty matrix there is the main one.
        let fits = |diagonal| is_inside(diagonal) || diagonal == 0;
        ensure!(
            fits(self.lower) && fits(self.upper),
            wrong(format!(
                "diag_index [{}, {}] is out of bound: it must be between {} and {columns}",
                self.lower,
                self.upper,
                -(rows as i64)
            ))
        );
        let (rows, columns) = (rows as i64, columns as i64);
        Ok((rows + self.upper.min(0)).min(columns - self.lower.max(0)).max(0) as usize)
    }

    /// Checks that a tensor has these diagonals of matrices of the shape `[batch.., rows, columns]`.
    fn check(self, diagonal: &[usize], batch: &[usize], longest: usize) -> Result<()> {
        let mut expected = batch.to_vec();
        if self.count() > 1 {
            expected.push(self.count());
        }
        expected.push(longest);
        ensure!(
            diagonal == expected,
            wrong(format!("the diagonals must have the shape {expected:?}, and not {diagonal:?}"))
        );
        Ok(())
    }

    fn enqueue(
        self,
        context: &Run<'_>,
        op: &'static str,
        (number, align): (u32, Align),
        [input, other, out]: [&DeviceTensor; 3],
        [rows, columns, longest]: [usize; 3],
    ) -> Result<()> {
        word(input.len())?;
        Launch {
            op,
            shader: shader!("diagonal"),
            constants: &[bytes(out)?, number, align[0].into(), align[1].into()],
            operands: &[input.into(), other.into(), out.into()],
            numbers: &[
                word(out.len())?,
                rows as u32,
                columns as u32,
                self.lower as i32 as u32,
                self.upper as i32 as u32,
                longest as u32,
            ],
            groups: groups(out.len()),
        }
        .enqueue(context)
    }
}

/// Divides a shape into those of its matrices and of the tensor of matrices.
fn matrices(shape: &[usize]) -> Result<(&[usize], [usize; 2])> {
    match shape {
        [batch @ .., rows, columns] => Ok((batch, [*rows, *columns])),
        _ => Err(wrong(format!("input must be at least 2-dim, received shape: {shape:?}"))),
    }
}

fn make(context: &Run<'_>, op: &'static str, align: Align) -> Result<()> {
    let (input, padding) = (context.input(0)?, context.input(4)?);
    let (diagonals, shape) = (Diagonals::of(context, 1)?, shape(&input)?);
    let of_one = if diagonals.count() > 1 { 2 } else { 1 };
    let (Some(&longest), Some(batches)) = (shape.last(), shape.len().checked_sub(of_one)) else {
        return Err(wrong(format!(
            "diagonal must be at least {of_one}-dim, received shape: {shape:?}"
        )));
    };
    let least = [longest as i64 - diagonals.upper.min(0), longest as i64 + diagonals.lower.max(0)];
    let [rows, columns] = match [host_integer(context, 2)?, host_integer(context, 3)?] {
        [-1, -1] => [least[0].max(least[1]); 2],
        [-1, columns] => [least[0], columns],
        [rows, -1] => [rows, least[1]],
        both => both,
    };
    ensure!(
        rows >= least[0] && columns >= least[1] && (rows == least[0] || columns == least[1]),
        wrong(format!(
            "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal: {rows} and {columns}, \
             and at least one must be {} or {}",
            least[0], least[1]
        ))
    );
    let [rows, columns] = [rows as usize, columns as usize];
    let batch = &shape[..batches];
    // As on the CPU, some may be outside of the matrix.
    diagonals.check(&shape, batch, longest)?;
    let out = output(context, 0, &[batch, &[rows, columns]].concat())?;
    diagonals.enqueue(
        context,
        op,
        (MAKE, align),
        [&input, &padding, &out],
        [rows, columns, longest],
    )
}

fn set(context: &Run<'_>, op: &'static str, align: Align) -> Result<()> {
    let (input, diagonal) = (context.input(0)?, context.input(1)?);
    let (diagonals, all) = (Diagonals::of(context, 2)?, shape(&input)?);
    let (batch, [rows, columns]) = matrices(&all)?;
    let longest = diagonals.longest([rows, columns])?;
    diagonals.check(&shape(&diagonal)?, batch, longest)?;
    let out = output(context, 0, &all)?;
    diagonals.enqueue(
        context,
        op,
        (SET, align),
        [&diagonal, &input, &out],
        [rows, columns, longest],
    )
}

fn part(context: &Run<'_>, op: &'static str, align: Align) -> Result<()> {
    let (input, padding) = (context.input(0)?, context.input(2)?);
    let (diagonals, all) = (Diagonals::of(context, 1)?, shape(&input)?);
    let (batch, [rows, columns]) = matrices(&all)?;
    let longest = diagonals.longest([rows, columns])?;
    let mut shape = batch.to_vec();
    if diagonals.count() > 1 {
        shape.push(diagonals.count());
    }
    shape.push(longest);
    let out = output(context, 0, &shape)?;
    diagonals.enqueue(
        context,
        op,
        (PART, align),
        [&input, &padding, &out],
        [rows, columns, longest],
    )
}

kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool])
    "MatrixDiagV3" MatrixDiag [Align = align] (host_memory("k", "num_rows", "num_cols")) =
        |run, op, align| make(run, op, *align);
    "MatrixSetDiagV3" MatrixSetDiag [Align = align] (host_memory("k")) = |run, op, align| set(run, op, *align);
    "MatrixDiagPartV3" MatrixDiagPart [Align = align] (host_memory("k")) = |run, op, align| part(run, op, *align);
}
