//! LSTM and GRU, with all steps in time in one op. Keras uses `CudnnRNN` (2.12 to 2.15, without a mask) and
//! `CudnnRNNV3` on devices of the type `GPU`. The numbers of the shader's ops are in `shaders/recurrent.comp`.
//!
//! `params` has the weights W of the input and R of the state, a matrix of units x inputs for each
//! gate, then both biases. The order of the gates is that of Keras on TensorFlow without CUDA: for
//! LSTM input, forget, cell, output; for GRU update, reset, cell.

use super::strided_copy::{Walk, fill, strides};
use super::*;
use crate::backend::MatMul;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Lstm,
    Gru,
}

/// The attributes of all four ops.
struct Layer {
    cell: Cell,
    is_time_major: bool,
    is_training: bool,
}

impl Layer {
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let cell = match &*construction.attr::<String>("rnn_mode")? {
            "lstm" => Cell::Lstm,
            "gru" => Cell::Gru,
            other => return Err(lacks(&format!("rnn_mode={other}"))),
        };
        for (name, only) in [("input_mode", "linear_input"), ("direction", "unidirectional")] {
            let value: String = construction.attr(name)?;
            ensure!(value == only, lacks(&format!("{name}={value}")));
        }
        ensure!(construction.attr::<f32>("dropout")? == 0.0, lacks("dropout"));
        let flag = |name| match construction.has_attr(name)? {
            true => construction.attr::<bool>(name),
            false => Ok(true),
        };
        if construction.has_attr("num_proj")? {
            ensure!(construction.attr::<i64>("num_proj")? == 0, lacks("num_proj"));
        }
        Ok(Self { cell, is_time_major: flag("time_major")?, is_training: flag("is_training")? })
    }
}

#[cold]
fn lacks(what: &str) -> Error {
    Error::new(Code::Unimplemented, format!("the device has no recurrent layer with {what}"))
}

/// A run of one of the ops.
struct Recurrent<'a> {
    context: &'a Run<'a>,
    op: &'static str,
    layer: &'a Layer,
    dtype: DType,
    time: usize,
    batch: usize,
    inputs: usize,
    units: usize,
}

impl Recurrent<'_> {
    /// Returns the columns of `x * W`, which are those of `h * R`.
    fn columns(&self) -> usize {
        self.units * if self.layer.cell == Cell::Lstm { 4 } else { 3 }
    }
}

impl<'a> Recurrent<'a> {
    fn new(
        context: &'a Run<'a>,
        op: &'static str,
        layer: &'a Layer,
        [input, h, c, params]: [&DeviceTensor; 4],
    ) -> Result<Self> {
        let (shape, state) = (shape(input)?, shape(h)?);
        let ([first, second, inputs], [_, _, units]) = (&shape[..], &state[..]) else {
            return Err(wrong(format!(
                "input and input_h must be 3-D vectors, and not {shape:?} and {state:?}"
            )));
        };
        let (time, batch, layers) = match layer.is_time_major {
            true => (*first, *second, [1, *second, *units]),
            false => (*second, *first, [*first, 1, *units]),
        };
        ensure!(
            state == layers,
            lacks(&format!("{state:?} as the shape of input_h for the input {shape:?}"))
        );
        ensure!(
            layer.cell == Cell::Gru || c.shape() == h.shape(),
            wrong(format!("input_c has the shape {:?} and not {state:?}", c.shape()))
        );
        let (inputs, units, dtype) = (*inputs, *units, input.dtype());
        let this = Self { context, op, layer, dtype, time, batch, inputs, units };
        ensure!(time > 0, wrong("input must have at least one step in time"));
        // Each size alone, as a product with a factor of 0 does not show that the others are too large.
        for size in [time, batch, inputs, units] {
            word(size)?;
        }
        let expected = (inputs + units + 2).saturating_mul(this.columns());
        ensure!(
            params.len() == expected,
            wrong(format!("params has {} elements and not {expected}", params.len()))
        );
        let gates = (time * batch).saturating_mul(4 * units);
        for len in [input.len(), params.len(), gates] {
            word(len)?;
        }
        Ok(this)
    }

    /// Returns the steps in time, of all sequences.
    fn rows(&self) -> usize {
        self.time * self.batch
    }

    /// Returns the lengths of the sequences, in host memory as for TensorFlow's kernels. Else TensorFlow would copy
    /// those of an eager op twice, since another output is there too, and read device memory the second time.
    fn lengths(&self) -> Result<DeviceTensor> {
        let lengths = self.context.host_input::<i32>(4)?;
        let lengths = lengths.as_slice();
        ensure!(
            lengths.len() == self.batch,
            wrong(format!(
                "sequence_lengths has {} elements and not {}",
                lengths.len(),
                self.batch
            ))
        );
        let bytes = lengths.iter().flat_map(|length| length.to_ne_bytes()).collect();
        let copy = self.context.temporary(DType::Int32, &[lengths.len() as i64])?;
        self.context.stream().write(self.op, &copy, bytes)?;
        Ok(copy)
    }

    /// Returns the number of elements of a state.
    fn state(&self) -> usize {
        self.batch * self.units
    }

    /// Returns the steps in time to compute: none if a state has no elements.
    fn steps(&self) -> usize {
        if self.state() == 0 { 0 } else { self.time }
    }

    /// Creates the output of the cell's state or its gradient. The GRU has none, for which TensorFlow expects a scalar.
    fn cell_output(&self, index: usize, c: &DeviceTensor) -> Result<DeviceTensor> {
        if self.layer.cell == Cell::Lstm {
            return self.context.output(index, c.shape());
        }
        let none = self.context.output(index, &[])?;
        fill(self.context, self.op, Operand::Value(0), &none)?;
        Ok(none)
    }

    fn at<'t>(&self, tensor: &'t DeviceTensor, element: usize) -> Operand<'t> {
        Operand::At(tensor, (element * self.dtype.size().unwrap_or_default()) as u64)
    }

    fn temporary(&self, len: usize) -> Result<DeviceTensor> {
        self.context.temporary(self.dtype, &[len as i64])
    }

    /// Returns where R, the biases, and the biases of R are in `params`.
    fn places(&self) -> [usize; 3] {
        let columns = self.columns();
        let biases = columns * (self.inputs + self.units);
        [columns * self.inputs, biases, biases + columns]
    }

    /// Returns the steps from one row of `y` to the next, and from one step in time to the next.
    fn y_steps(&self) -> [usize; 2] {
        match self.layer.is_time_major {
            true => [self.units, self.state()],
            false => [self.time * self.units, self.units],
        }
    }

    /// Runs the shader over `[rows, columns]`.
    fn launch(
        &self,
        number: u32,
        operands: &[Operand<'_>],
        [rows, columns]: [usize; 2],
        time: usize,
    ) -> Result<()> {
        let mut all = [Operand::Value(0); 12];
        all[..operands.len()].copy_from_slice(operands);
        let results = if number == SUM_COLUMNS { columns } else { rows * columns };
        Launch {
            op: self.op,
            shader: shader!("recurrent"),
            constants: &[number, element_type(self.dtype)?],
            operands: &all,
            numbers: &[rows, columns, time, self.y_steps()[0]].map(|number| number as u32),
            groups: groups(results),
        }
        .enqueue(self.context)
    }

    /// Sets `to` to a state, or to the sum of two.
    fn add(&self, to: Operand<'_>, terms: &[Operand<'_>]) -> Result<()> {
        let operands = [&[to][..], terms].concat();
        self.launch(ADD, &operands, [self.batch, self.units], 0)
    }

    fn product(
        &self,
        transpose: [bool; 2],
        [rows, inner, columns]: [usize; 3],
        operands: [Operand<'_>; 3],
    ) -> Result<()> {
        let (dtype, batch, strides) = (self.dtype, 1, [0; 2]);
        let product = MatMul { dtype, transpose, rows, inner, columns, batch, strides };
        product.enqueue(self.context, self.op, operands)
    }

    /// Copies between the order of the input and that with time first.
    fn swap(&self, from: &DeviceTensor, to: &DeviceTensor, is_to_time: bool) -> Result<()> {
        let (sizes, source) =
            ([self.time, self.batch, self.inputs], [self.batch, self.time, self.inputs]);
        let dense = strides(&source);
        let walk = Walk::new(&sizes, &[dense[1], dense[0], dense[2]], &strides(&sizes));
        let walk = if is_to_time { walk } else { walk.reversed() };
        walk.enqueue(self.context, self.op, from.into(), to)
    }

    /// Returns the input with time first.
    fn by_time(&self, input: DeviceTensor) -> Result<DeviceTensor> {
        if self.layer.is_time_major {
            return Ok(input);
        }
        let by_time = self.temporary(input.len())?;
        self.swap(&input, &by_time, true)?;
        Ok(by_time)
    }

    /// Returns the layout of what the gradient needs: `[time, batch, 4 * units]` for the gates and, in the GRU, `h * R`
    /// of the cell; `[time + 1, batch, units]` for the states h, including the initial one; and the same for c.
    fn reserve(&self) -> Reserve {
        let states = self.rows() * 4 * self.units;
        let cells = states + self.state() * (self.time + 1);
        let end = match self.layer.cell {
            Cell::Lstm => cells + self.state() * (self.time + 1),
            Cell::Gru => cells,
        };
        Reserve { states, cells, end }
    }
}

/// The offsets in `reserve_space`; the gates are at 0.
struct Reserve {
    states: usize,
    cells: usize,
    end: usize,
}

const ADD: u32 = 4;
const SUM_COLUMNS: u32 = 5;

fn forward(context: &Run<'_>, op: &'static str, layer: &Layer, has_lengths: bool) -> Result<()> {
    let [input, h, c, params] = [0, 1, 2, 3].map(|index| context.input(index));
    let (input, h, c, params) = (input?, h?, c?, params?);
    let run = Recurrent::new(context, op, layer, [&input, &h, &c, &params])?;
    let is_lstm = layer.cell == Cell::Lstm;
    let (columns, state, size) = (run.columns(), run.state(), [run.batch, run.units]);
    let lengths = has_lengths.then(|| run.lengths()).transpose()?;

    let mut shape = shape(&input)?;
    shape[2] = run.units;
    let y = output(context, 0, &shape)?;
    let last_h = context.output(1, h.shape())?;
    let last_c = run.cell_output(2, &c)?;
    let reserve = run.reserve();
    let kept = match layer.is_training {
        true => output(context, 3, &[reserve.end])?,
        false => {
            output(context, 3, &[0])?;
            run.temporary(reserve.end)?
        }
    };
    word(reserve.end)?;
    if has_lengths {
        context.host_output::<i8>(4, &[0])?;
    }

    let input = run.by_time(input)?;
    let [x_w, h_r] = [run.rows() * columns, run.batch * columns].map(|len| run.temporary(len));
    let (x_w, h_r) = (x_w?, h_r?);
    let [r, biases, _] = run.places();
    run.product(
        [false, true],
        [run.rows(), run.inputs, columns],
        [(&input).into(), (&params).into(), (&x_w).into()],
    )?;
    run.add(run.at(&kept, reserve.states), &[(&h).into()])?;
    if is_lstm {
        run.add(run.at(&kept, reserve.cells), &[(&c).into()])?;
    }
    for time in 0..run.steps() {
        let [h, next_h] = [time, time + 1].map(|at| run.at(&kept, reserve.states + at * state));
        let [c, next_c] = [time, time + 1].map(|at| run.at(&kept, reserve.cells + at * state));
        run.product(
            [false, true],
            [run.batch, run.units, columns],
            [h, run.at(&params, r), (&h_r).into()],
        )?;
        let operands = [
            run.at(&x_w, time * run.batch * columns),
            (&h_r).into(),
            run.at(&params, biases),
            run.at(&kept, time * 4 * state),
            h,
            next_h,
            run.at(&y, time * run.y_steps()[1]),
            lengths.as_ref().map_or(Operand::Value(0), Operand::from),
            c,
            next_c,
        ];
        let (number, used) = if is_lstm { (0, 10) } else { (2, 8) };
        run.launch(number, &operands[..used], size, time)?;
    }
    run.add((&last_h).into(), &[run.at(&kept, reserve.states + run.time * state)])?;
    if is_lstm {
        run.add((&last_c).into(), &[run.at(&kept, reserve.cells + run.time * state)])?;
    }
    Ok(())
}

fn backward(context: &Run<'_>, op: &'static str, layer: &Layer, has_lengths: bool) -> Result<()> {
    let [input, h, c, params] = [0, 1, 2, 3].map(|index| context.input(index));
    let (input, h, c, params) = (input?, h?, c?, params?);
    let run = Recurrent::new(context, op, layer, [&input, &h, &c, &params])?;
    // These inputs follow the outputs of the forward op.
    let first = if has_lengths { 8 } else { 7 };
    let [dy, last_dh, last_dc, kept] = [0, 1, 2, 3].map(|index| context.input(first + index));
    let (dy, last_dh, last_dc, kept) = (dy?, last_dh?, last_dc?, kept?);
    let is_lstm = layer.cell == Cell::Lstm;
    let (columns, state, size) = (run.columns(), run.state(), [run.batch, run.units]);
    let lengths = has_lengths.then(|| run.lengths()).transpose()?;
    let reserve = run.reserve();
    let expected = [(&dy, run.rows() * run.units), (&last_dh, state), (&kept, reserve.end)];
    let last_c = is_lstm.then_some((&last_dc, state));
    for (tensor, len) in expected.into_iter().chain(last_c) {
        ensure!(
            tensor.len() == len,
            wrong(format!(
                "a gradient or reserve_space has {} elements and not {len}",
                tensor.len()
            ))
        );
    }

    let dx = context.output(0, input.shape())?;
    let dh = context.output(1, h.shape())?;
    let dc = run.cell_output(2, &c)?;
    let dparams = context.output(3, params.shape())?;
    let [dx_w, by_r, past_r] = [run.rows() * columns, state, state].map(|len| run.temporary(len));
    let (dx_w, by_r, past_r) = (dx_w?, by_r?, past_r?);
    // In the LSTM both are the same.
    let of_gru = (!is_lstm).then(|| run.temporary(run.rows() * columns)).transpose()?;
    let dh_r = of_gru.as_ref().unwrap_or(&dx_w);
    let [r, biases, biases_of_r] = run.places();

    for time in (0..run.steps()).rev() {
        let is_last = time + 1 == run.time;
        let at = |place: usize, time: usize| run.at(&kept, place + time * state);
        let row = time * run.batch * columns;
        let operands = [
            run.at(&dy, time * run.y_steps()[1]),
            if is_last { (&last_dh).into() } else { (&by_r).into() },
            if is_last { Operand::Value(0) } else { (&past_r).into() },
            (&past_r).into(),
            if is_last { (&last_dc).into() } else { (&dc).into() },
            (&dc).into(),
            run.at(&dx_w, row),
            run.at(dh_r, row),
            lengths.as_ref().map_or(Operand::Value(0), Operand::from),
            run.at(&kept, time * 4 * state),
            at(if is_lstm { reserve.cells } else { reserve.states }, time),
            if is_lstm { at(reserve.cells, time + 1) } else { Operand::Value(0) },
        ];
        run.launch(if is_lstm { 1 } else { 3 }, &operands, size, time)?;
        run.product(
            [false, false],
            [run.batch, columns, run.units],
            [run.at(dh_r, row), run.at(&params, r), (&by_r).into()],
        )?;
    }
    run.add((&dh).into(), &[(&by_r).into(), (&past_r).into()])?;

    let product = [(&dx_w).into(), (&params).into()];
    let sizes = [run.rows(), columns, run.inputs];
    if layer.is_time_major {
        run.product([false, false], sizes, [product[0], product[1], (&dx).into()])?;
    } else {
        let by_time = run.temporary(input.len())?;
        run.product([false, false], sizes, [product[0], product[1], (&by_time).into()])?;
        run.swap(&by_time, &dx, false)?;
    }
    let input = run.by_time(input)?;
    run.product(
        [true, false],
        [columns, run.rows(), run.inputs],
        [(&dx_w).into(), (&input).into(), (&dparams).into()],
    )?;
    run.product(
        [true, false],
        [columns, run.rows(), run.units],
        [dh_r.into(), run.at(&kept, reserve.states), run.at(&dparams, r)],
    )?;
    for (bias, source) in [(biases, &dx_w), (biases_of_r, dh_r)] {
        let operands = [run.at(&dparams, bias), source.into()];
        run.launch(SUM_COLUMNS, &operands, [run.rows(), columns], 0)?;
    }
    Ok(())
}

kernels! {
    types (T = [f32, f16])
    "CudnnRNN" Forward [Layer = Layer::new] () = |run, op, layer| forward(run, op, layer, false);
    "CudnnRNNBackprop" Backward [Layer = Layer::new] () = |run, op, layer| backward(run, op, layer, false);
    "CudnnRNNV3" ForwardV3 [Layer = Layer::new] (host_memory("sequence_lengths", "host_reserved")) =
        |run, op, layer| forward(run, op, layer, true);
    "CudnnRNNBackpropV3" BackwardV3 [Layer = Layer::new] (host_memory("sequence_lengths", "host_reserved")) =
        |run, op, layer| backward(run, op, layer, true);
}
