//! The cases for devices in TensorFlow; `python/` and `in_c.rs` have each under the same name.

use super::in_c::{self, OnDevice};

tensorflow_cases! {
    from_python ["common", "device", "copies", "many", "kernels", "programs", "every"] {
        "The device" {
            python_device_is_listed
                "The devices are listed after the import, physical and logical, numbered from 0", "programs choose by these names";
            python_loaded_twice
                "Loading the library a second time neither ends the process nor adds a device", "TensorFlow does it where one directory has two names";
            python_memory_info
                "`get_memory_info` counts what is allocated, if the device has figures", "users look for leaks with it";
        }
        "Copies" {
            python_copies_of_floats
                "Floats of 16 to 64 bits there and back, 0 to 100,003 of them", "each value that a program looks at is copied";
            python_copies_of_integers
                "Integers of 8 to 64 bits there and back", "each value that a program looks at is copied";
            python_copies_of_int32
                "`int32` keeps its values, wherever TensorFlow puts it", "shapes are of that type";
            python_copies_of_bool_and_complex
                "`bool`, `complex64` and `complex128` there and back", "each value that a program looks at is copied";
            python_copies_of_shapes
                "Scalars, empty tensors and six dimensions there and back", "shapes stay on the host";
            python_copy_of_16_mib
                "16 MiB, and a byte more, there and back", "weights";
            python_copies_of_odd_views
                "Views of an array whose rows do not lie together", "NumPy passes them";
            python_copy_to_the_cpu
                "`tf.identity` on the CPU of what is on the device", "programs are spread so";
            python_copy_between_devices
                "`tf.identity` on the second device of what is on the first, if there are two", "programs are spread so";
            python_strings_stay_on_the_host
                "Strings keep their values or are refused", "devices cannot hold them";
        }
        "Many" {
            python_many_small_tensors
                "2,000 scalars at a time", "each is an allocation";
            python_memory_comes_back
                "64 times 4 MiB, of which three live at a time", "training does it forever";
            python_threads_copy
                "Eight threads copy there and back", "TensorFlow calls from as many threads as there are cores";
            python_threads_compute
                "Eight threads compute, each on what it has put there", "all kernels share one stream";
        }
        "Kernels" {
            python_kernels_of_one_argument
                "`Exp`, `Neg`, `Sqrt` and their like return the same as on the CPU, in each type that the plugin has", "a model gives the same results everywhere";
            python_kernels_of_two_arguments
                "`AddV2`, `Mul`, `Pow` and their like, of equal shapes", "a model gives the same results everywhere";
            python_kernels_that_broadcast
                "The same of shapes that broadcast", "biases and scales are of fewer dimensions";
            python_kernels_that_compare
                "`Less`, `Equal`, `LogicalAnd` and their like", "a model gives the same results everywhere";
            python_kernels_that_reduce
                "`Sum`, `Max`, `ArgMax` and their like, along several axes", "a model gives the same results everywhere";
            python_kernels_of_matrices
                "`MatMul`, `BatchMatMul`, `BiasAdd`", "a model gives the same results everywhere";
            python_kernels_of_networks
                "`Relu`, `Softmax`, `Conv2D`, `MaxPool`, and gradients", "a model gives the same results everywhere";
            python_kernels_that_arrange
                "`Transpose`, `Slice`, `GatherV2`, `Pad` and their like", "a model gives the same results everywhere";
            python_shapes_that_do_not_fit
                "Shapes that do not match raise `InvalidArgumentError`, and the device continues to work", "the error names the mistake";
            python_missing_kernel
                "An operation without a kernel raises an error, and the device continues to work", "the error names the mistake";
        }
        "Programs" {
            python_function
                "A `tf.function` on the device, from the host and from the device", "programs are compiled so";
            python_function_with_copies
                "Ten turns between device and CPU in one function, five times", "what has no kernel runs on the CPU";
            python_gradient
                "The gradient of an operation that the plugin has", "training";
            python_chain_of_work
                "500 additions without a look between them", "work is queued, and must be done in order";
            python_data_pipeline
                "Batches of `tf.data` onto the device", "training";
            python_session
                "A session with ten turns between device and CPU, again after an error, and in eight threads", "serving runs graphs so";
        }
        "Every kernel" {
            python_names_of_ops
                "The op of each kernel exists; a misspelt name is found", "TensorFlow registers kernels for any name";
            python_every_kernel
                "Each kernel returns the same as the CPU's, of inputs made from the op's definition; lists the others as never compared", "a wrong kernel trains a wrong model";
        }
    }
    in_c OnDevice {
        "The device" {
            c_device_is_listed
                "`TFE_ContextListDevices` has the devices, numbered from 0", "programs choose by these names";
            c_loaded_twice
                "`TF_LoadPluggableDeviceLibrary` a second time neither ends the process nor adds a device", "libraries of one program each do it";
            c_contexts_come_and_go
                "`TFE_NewContext` and `TFE_DeleteContext`, three times, next to another context", "programs create one per model";
        }
        "Copies and kernels" {
            c_copies
                "`TFE_TensorHandleCopyToDevice`, `TFE_TensorHandleResolve`, and copies to the CPU and to a second device, of bytes in several shapes, up to 16 MiB and a byte", "each value that a program looks at is copied";
            c_threads_compute
                "Eight threads add, each to what it has put there, as the CPU does", "all kernels share one stream";
        }
    }
}
