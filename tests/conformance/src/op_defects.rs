//! The defects of ops.

/// Passes the defects of ops to a macro: name, what is wrong, and the cases that find it.
///
/// `tests/tensorflow/fixtures/brokenops` has them, `op_conformance.rs` in `tests/tensorflow` proves the cases, and the book's
/// crate makes a table.
#[macro_export]
macro_rules! op_defects {
    ($list:ident) => {
        $list! {
            WritesIntoInput "an op changes its input" => python_inputs_are_kept;
            WrongInPlace "a result is wrong in the memory of an input" => python_memory_of_inner_values;
            WrongForDouble "one of two number types has another result" => python_results;
            FirstCallOfNode "the first call of a node has another result" => python_function python_session python_data_map;
            CountsCalls "a result depends on the calls before, and the op is not declared to be stateful" => python_same_again python_vectorized_map;
            GradientOff "a gradient is 2 % off" => python_gradient;
            StaticShape "a function says that there is one element more" => python_shapes_of_functions;
            PanicsOnEmpty "the first element is taken of an empty tensor" => python_empty_tensors;
            PanicsOnScalars "the first dimension is taken of a scalar" => python_ranks;
            UnnamedInput "an error about a shape does not name the input" => python_wrong_shapes;
            LargeLosesLast "the last of more than 50,000 strings is lost" => python_large_inputs;
            PanicsOnBytes "bytes that are not UTF-8 panic" => python_odd_bytes;
            EndsAtNul "strings end at NUL" => python_bytes_after_nul;
            PanicsOnLong "a string of more than 1 MB panics" => python_long_string;
            DependsOnProcess "a result depends on the process's random hash keys" => python_saved_model;
            SharedState "calls share a variable without a lock" => python_threads python_data_batches;
            BreaksAfterFork "a thread is expected that a fork does not copy" => python_forks;
            Leaks "each call leaks 100 bytes" => python_memory_of_many_calls;
        }
    };
}
