//! The cases for ops in TensorFlow; `python/` has each under the same name.

tensorflow_cases! {
    from_python ["common", "results", "shapes", "programs", "edges", "process"] {
        "Results" {
            python_every_op
                "Each op of the library is registered, and has a sample call or is the gradient of one that has; lists the others as never called", "an op that nothing calls is not tested";
            python_results
                "Types of outputs, and the expected outputs, for each number type", "a kernel is registered for each type";
            python_same_again
                "The same call ten times, and two new nodes, return the same, unless the op is stateful", "TensorFlow merges equal nodes";
            python_inputs_are_kept
                "Tensors, variables, constants, and values that a function uses twice, are the same after the op", "an input's memory is TensorFlow's";
            python_memory_of_inner_values
                "The op on a value that nothing else in a function uses returns the same", "such memory may be used for an output";
            python_gradient
                "The declared gradient against finite differences, by a tape and in a function", "a wrong gradient trains a wrong model";
        }
        "Shapes" {
            python_shapes_of_functions
                "Functions that know all, some and none of the shapes return the same as an eager call, of the shapes that they say", "models are built from these shapes";
            python_empty_tensors
                "Each dimension of length 0, alone and together: results, or an error that is not a panic", "the last batch of a filter is empty";
            python_ranks
                "Ranks 0 to 5, where the declaration has `..`", "users have batches of batches";
            python_wrong_shapes
                "A wrong rank, a wrong length, and lengths that differ between inputs raise an error that names the input", "the error names the mistake";
            python_large_inputs
                "100,000 elements, with `TF_PLUGIN_TESTS=all` 10,000,000: if outputs of twice the rows repeat, so do those of all", "threads split large inputs";
        }
        "Programs" {
            python_function
                "A `tf.function`, three times, and one whose inputs are constants", "TensorFlow computes constants while it optimizes a graph";
            python_session
                "A graph in a session, with placeholders", "older programs and servers run graphs so";
            python_data_map
                "24 elements of `tf.data`, one at a time and four at a time, in order", "input pipelines call ops on several threads";
            python_data_batches
                "Batches of 5, the last of 2, four at a time, if the op takes them", "batches cost less than elements";
            python_vectorized_map
                "`tf.vectorized_map` by its fallback to a loop", "gradients of batches use it";
            python_saved_model
                "A SavedModel that was moved returns the same in another process, which imports TensorFlow only", "models are served so";
        }
        "Values and types" {
            python_odd_bytes
                "Strings with NUL, without UTF-8, empty, of 22, 23 and 70,000 bytes: results, the same in a function, or an error that is not a panic", "a string is any bytes";
            python_bytes_after_nul
                "Texts that differ after a NUL give different outputs, if the same texts without NUL do", "a C string ends at NUL";
            python_long_string
                "A string of 10 MB, and the sample call afterwards", "files are read into one string";
            python_wrong_types
                "An input of another type raises an error that names it or the op", "the error names the mistake";
        }
        "The process" {
            python_loaded_twice
                "The library is loaded again, by each of TensorFlow's functions", "a wheel and a program may both load it";
            python_threads
                "16 threads with different arguments, eagerly and by one node", "TensorFlow calls a node from many threads";
            python_forks
                "Eager calls in a forked child, three times, and in the parent afterwards", "`multiprocessing` and servers fork";
            python_memory_of_many_calls
                "10,000 calls leave no memory allocated", "training makes millions of calls";
        }
    }
}
