//! The calls whose instructions are counted.

use anyhow::{Result, anyhow};

use crate::abi::eager::{Eager, EagerOp, Handle};
use crate::comparison;

/// Inputs of the ops.
#[derive(Clone, Copy, Debug)]
enum Input {
    /// So many numbers.
    Floats(usize),
    /// So many strings of this length: words and spaces.
    Strings(usize, usize),
}

/// A row of the table: an op and its input.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    name: &'static str,
    /// The name of the op, after that of its language.
    op: &'static str,
    input: Input,
    outputs: usize,
    operations: usize,
    /// The most that Rust may cost, relative to C++.
    pub goal: f64,
}

const fn small(name: &'static str, op: &'static str, input: Input, outputs: usize) -> Row {
    Row { name, op, input, outputs, operations: 200, goal: super::SMALL_GOAL }
}

const fn large(name: &'static str, op: &'static str, input: Input, outputs: usize) -> Row {
    let goal = match input {
        Input::Strings(..) => super::STRINGS_GOAL,
        Input::Floats(_) => super::NUMBERS_GOAL,
    };
    Row { name, op, input, outputs, operations: 2, goal }
}

impl Row {
    /// All rows, in the order of the table.
    pub const ALL: &[Self] = &[
        small("4 floats", "Scale", Input::Floats(4), 1),
        small("4 floats, `reuse`", "ScaleReuse", Input::Floats(4), 1),
        small("4 floats, attribute and state", "Buckets", Input::Floats(4), 1),
        small("one string of 12 bytes", "Upper", Input::Strings(1, 12), 1),
        small("one string of 60 bytes to words", "Words", Input::Strings(1, 60), 2),
        large("10⁵ floats", "Scale", Input::Floats(100_000), 1),
        large("10⁵ floats, attribute and state", "Buckets", Input::Floats(100_000), 1),
        Row {
            goal: super::NUMBERS_GOAL,
            ..large(
                "10⁴ strings of 60 bytes to ragged numbers",
                "Codes",
                Input::Strings(10_000, 60),
                2,
            )
        },
        large("10⁴ strings of 12 bytes", "Upper", Input::Strings(10_000, 12), 1),
        large("10⁴ strings of 60 bytes", "Upper", Input::Strings(10_000, 60), 1),
        large("10⁴ strings of 60 bytes to ragged words", "Words", Input::Strings(10_000, 60), 2),
    ];
}

impl comparison::Row for Row {
    fn name(self) -> &'static str {
        self.name
    }

    fn operations(self) -> usize {
        self.operations
    }
}

/// A row on a library, ready to run.
#[derive(Debug)]
pub struct Session<'e> {
    eager: &'e Eager,
    op: EagerOp,
    input: Handle<'e>,
    result: Result<()>,
}

impl<'e> Session<'e> {
    /// Creates the input. `language` is the start of the names of the library's ops.
    pub fn new(eager: &'e Eager, language: &str, row: Row) -> Result<Self> {
        let attributes = match row.op {
            "Buckets" => {
                vec![("boundaries", floats(&[0.75, 0.125, 0.5, 0.25, 0.875, 0.375, 0.625]))]
            }
            _ => Vec::new(),
        };
        let input = match row.input {
            Input::Floats(count) => {
                // In no order, and the same each time.
                let floats = (0..count).map(|at| (at * 617 % 1000) as f32 / 1000.0);
                eager.floats(&floats.collect::<Vec<_>>())?
            }
            Input::Strings(count, len) => {
                let text = "to be or not to be that is the question whether it is nobler ";
                let strings =
                    (0..count).map(|at| text.chars().cycle().skip(at % 7).take(len).collect());
                eager.strings(&strings.collect::<Vec<String>>())?
            }
        };
        let op = EagerOp::new(&format!("{language}{}", row.op), &attributes, row.outputs)?;
        Ok(Self { eager, op, input, result: Ok(()) })
    }
}

impl comparison::Session for Session<'_> {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn run(&mut self, operations: usize) {
        self.result = (0..operations).try_for_each(|_| self.eager.run(&self.op, &self.input));
    }

    fn check(&mut self) -> Result<()> {
        std::mem::replace(&mut self.result, Ok(()))
            .map_err(|error| anyhow!("{}: {error}", self.op.name().to_string_lossy()))
    }
}

/// Returns an attribute that is a list of at most 31 numbers, as a serialised `AttrValue`.
fn floats(values: &[f32]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let len = bytes.len() as u8;
    // Field 1, a `ListValue` with the field 4, which is packed.
    [&[0x0a, len + 2, 0x22, len][..], &bytes].concat()
}
