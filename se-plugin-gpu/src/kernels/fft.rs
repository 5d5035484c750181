//! Fourier transforms along the last axes: of any length, by its factors.

use super::*;

/// The largest product of small factors that are a step.
const MOST_RADIX: usize = 16;

/// The longest transform: `shaders/fft.comp` counts eights of a turn in 32 bits.
const MOST_LEN: usize = 1 << 27;

/// The elements of a tensor: `IN` in the shader.
#[derive(Clone, Copy, PartialEq)]
enum Elements {
    Complex,
    Real,
    /// The first half of the spectrum of real numbers.
    Half,
}
use Elements::{Complex, Half, Real};

/// A transform of a tensor of the shape `[rows, in_len, inner]` along its second axis.
struct Pass {
    len: usize,
    is_inverse: bool,
    rows: usize,
    inner: usize,
    source: (Elements, usize),
    target: (Elements, usize),
}

/// Returns the factors of a length, of which small ones are multiplied.
fn radices(mut len: usize) -> Vec<usize> {
    let (mut all, mut factor) = (vec![1], 2);
    while len > 1 {
        if factor * factor > len {
            factor = len;
        }
        if !len.is_multiple_of(factor) {
            factor += 1;
            continue;
        }
        len /= factor;
        match all.last_mut() {
            Some(last) if *last * factor <= MOST_RADIX || *last == 1 => *last *= factor,
            _ => all.push(factor),
        }
    }
    all
}

impl Pass {
    /// Enqueues it, a launch for each step.
    fn enqueue(
        &self,
        context: &Run<'_>,
        op: &'static str,
        source: &DeviceTensor,
        target: &DeviceTensor,
    ) -> Result<()> {
        ensure!(
            self.len <= MOST_LEN,
            Error::new(
                Code::Unimplemented,
                format!("{op} of {} elements: this device transforms at most {MOST_LEN}", self.len)
            )
        );
        let radices = radices(self.len);
        let most = radices.iter().max().copied().unwrap_or_default();
        let largest = self.rows * self.len.max(self.target.1) * self.inner;
        // An invocation computes several elements if there are more than invocations.
        ensure_turns(context, op, (most + 16) * largest.div_ceil(256 * MOST_GROUPS))?;
        ensure_work(op, largest, most)?;
        let (last, scale) =
            (radices.len() - 1, if self.is_inverse { 1.0 / self.len as f32 } else { 1.0 });
        let (mut before, mut from) = (1, source.clone());
        for (step, &radix) in radices.iter().enumerate() {
            let (elements, in_len) = if step == 0 { self.source } else { (Complex, self.len) };
            let (result, out_len) = if step == last { self.target } else { (Complex, self.len) };
            let count = self.rows * out_len * self.inner;
            let to = if step == last { target.clone() } else { numbers(context, count)? };
            for len in [in_len, out_len] {
                word(2 * self.rows * len * self.inner)?;
            }
            let sizes = [count, self.len, in_len, out_len, self.inner, before, radix];
            let mut numbers = sizes.map(|size| size as u32).to_vec();
            numbers.push(if step == last { scale } else { 1f32 }.to_bits());
            Launch {
                op,
                shader: shader!("fft"),
                constants: &[elements as u32, (result == Real).into(), self.is_inverse.into()],
                operands: &[(&from).into(), (&to).into()],
                numbers: &numbers,
                groups: groups(count),
            }
            .enqueue(context)?;
            (before, from) = (before * radix, to);
        }
        Ok(())
    }
}

/// Returns memory for this many complex numbers.
fn numbers(context: &Run<'_>, count: usize) -> Result<DeviceTensor> {
    context.temporary(DType::Complex64, &[count as i64])
}

/// How a tensor of real numbers is transformed, or transformed to.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Complex,
    FromReal,
    ToReal,
}

/// Transforms the last `rank` axes. The lengths of transforms of real numbers are in input 1, in host memory.
fn transform(
    context: &Run<'_>,
    op: &'static str,
    rank: usize,
    way: Way,
    is_inverse: bool,
) -> Result<()> {
    let input = context.input(0)?;
    let mut shape = shape(&input)?;
    let Some(first) = shape.len().checked_sub(rank) else {
        return Err(wrong(format!(
            "Input must have rank of at least {rank} but got: {:?}",
            input.shape()
        )));
    };
    let lens = if way == Way::Complex { shape[first..].to_vec() } else { lens(context, rank)? };
    let half = |axis: usize| {
        let len = lens[axis];
        if axis + 1 == rank && len > 0 { len / 2 + 1 } else { len }
    };
    let mut out_shape = shape.clone();
    for (axis, &len) in lens.iter().enumerate() {
        let (at, least) = (first + axis, if way == Way::ToReal { half(axis) } else { len });
        ensure!(
            shape[at] == 0 || shape[at] >= least,
            wrong(format!(
                "Input dimension {at} must have length of at least {least} but got: {}",
                shape[at]
            ))
        );
        out_shape[at] = if way == Way::FromReal { half(axis) } else { len };
    }
    let out = output(context, 0, &out_shape)?;
    if input.is_empty() || out.is_empty() {
        return strided_copy::fill(context, op, Operand::Value(0), &out);
    }
    // Real numbers are transformed first, and last.
    let mut axes: Vec<usize> = (0..rank).collect();
    if way != Way::ToReal {
        axes.reverse();
    }
    let mut from = input;
    for (number, &axis) in axes.iter().enumerate() {
        let (at, is_innermost) = (first + axis, axis + 1 == rank);
        let in_len = core::mem::replace(&mut shape[at], out_shape[at]);
        let is_last = number + 1 == rank;
        let to = if is_last { out.clone() } else { numbers(context, shapes::count(&shape))? };
        let source = match way {
            Way::FromReal if is_innermost => Real,
            Way::ToReal if is_innermost => Half,
            _ => Complex,
        };
        let is_real = way == Way::ToReal && is_innermost;
        let pass = Pass {
            len: lens[axis],
            is_inverse,
            rows: shapes::count(&shape[..at]),
            inner: shapes::count(&shape[at + 1..]),
            source: (source, in_len),
            target: (if is_real { Real } else { Complex }, out_shape[at]),
        };
        pass.enqueue(context, op, &from, &to)?;
        from = to;
    }
    Ok(())
}

/// Reads the lengths.
fn lens(context: &Run<'_>, rank: usize) -> Result<Vec<usize>> {
    let lens = context.host_integers(1)?;
    ensure!(lens.len() == rank, wrong(format!("fft_length must have shape [{rank}]")));
    let all = lens.iter().enumerate().map(|(axis, &len)| {
        usize::try_from(len)
            .map_err(|_| wrong(format!("fft_length[{axis}] must >= 0, but got: {len}")))
    });
    all.collect()
}

kernels! {
    types (Tcomplex = [C64])
    "FFT" Fft () = |run, op| transform(run, op, 1, Way::Complex, false);
    "FFT2D" Fft2 () = |run, op| transform(run, op, 2, Way::Complex, false);
    "FFT3D" Fft3 () = |run, op| transform(run, op, 3, Way::Complex, false);
    "IFFT" Ifft () = |run, op| transform(run, op, 1, Way::Complex, true);
    "IFFT2D" Ifft2 () = |run, op| transform(run, op, 2, Way::Complex, true);
    "IFFT3D" Ifft3 () = |run, op| transform(run, op, 3, Way::Complex, true);
    types (Treal = [f32], Tcomplex = [C64])
    "RFFT" Rfft (host_memory("fft_length")) = |run, op| transform(run, op, 1, Way::FromReal, false);
    "RFFT2D" Rfft2 (host_memory("fft_length")) = |run, op| transform(run, op, 2, Way::FromReal, false);
    "RFFT3D" Rfft3 (host_memory("fft_length")) = |run, op| transform(run, op, 3, Way::FromReal, false);
    "IRFFT" Irfft (host_memory("fft_length")) = |run, op| transform(run, op, 1, Way::ToReal, true);
    "IRFFT2D" Irfft2 (host_memory("fft_length")) = |run, op| transform(run, op, 2, Way::ToReal, true);
    "IRFFT3D" Irfft3 (host_memory("fft_length")) = |run, op| transform(run, op, 3, Way::ToReal, true);
}

#[cfg(test)]
mod tests {
    use super::radices;

    #[test]
    fn the_product_of_all_steps_is_the_length() {
        for len in 1..2000 {
            assert_eq!(radices(len).iter().product::<usize>(), len);
        }
        assert_eq!(radices(1), [1]);
        assert_eq!(radices(1024), [16, 16, 4]);
        assert_eq!(radices(400), [16, 5, 5]);
        assert_eq!(radices(2 * 10_007), [2, 10_007]);
    }
}
