//! Tests that each violation of the C boundary is found and named. The SDK breaks no rule, so the op of these tests is
//! written on the C functions.

use crate::ops::{Host, Violation};
use core::cell::Cell;
use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Once;
use tf_fs_sys::host::Table as _;
use tf_fs_sys::{
    BufferFunctions, KernelFunctions, OpFunctions, StatusFunctions, TF_FLOAT, TF_INT32,
    TF_OpKernelConstruction, TF_OpKernelContext, TF_ShapeInferenceContext, TF_Status,
    TensorFunctions,
};

/// What the op does wrong, and a part of the text by which it is found.
macro_rules! defects {
    ($($name:ident $text:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Defect { $($name,)* }

        const DEFECTS: &[(Defect, &str)] = &[$((Defect::$name, $text),)*];
    };
}

defects! {
    InputLeaks "2 tensor(s) that the plugin got are not freed",
    BufferLeaks "1 buffer(s) that the plugin got are not freed",
    ShapeLeaks "3 shape handle(s) that the plugin got are not freed",
    OutputMissing "output 0, `y`, is not set",
    OutputTwice "output 0, `y`, is set twice",
    OutputOfAnotherType "output 0, `y`, is of int32, and the definition says float32",
    OutputOfAnotherShape "output 0, `y`, has the shape [2, 1], and the shape function says [2] (inputs of the shapes [2])",
    OutputTooShort "a tensor of 4 bytes does not have the shape [2]",
    OutputChanges "output 0, `y`, is another one with inputs that others use",
    OutputWithoutAShape "the shape of output `y` is not set",
    NegativeShape "no tensor has the shape [-1]",
    IndexOutOfRange "there is no index 7; TensorFlow aborts the process",
    InputChanged "the op has changed input 0, `x`",
    UsedAfterFree "used a tensor after it was freed",
    FreedTwice "used a tensor after it was freed",
    NoTensor "passed a null pointer for a tensor",
    ShapeFails "fails, and `compute` succeeds: no dimension; no graph can have the node (inputs of the shapes [?])",
    StatusNotSet "the status was never set",
}

thread_local! {
    static DEFECT: Cell<Option<Defect>> = const { Cell::new(None) };
}

fn has(defect: Defect) -> bool {
    DEFECT.get() == Some(defect)
}

struct Api {
    ops: &'static OpFunctions,
    kernels: &'static KernelFunctions,
    tensors: &'static TensorFunctions,
    status: &'static StatusFunctions,
}

fn api() -> Api {
    Api {
        ops: OpFunctions::get().unwrap(),
        kernels: KernelFunctions::get().unwrap(),
        tensors: TensorFunctions::get().unwrap(),
        status: StatusFunctions::get().unwrap(),
    }
}

unsafe extern "C" fn infer(context: *mut TF_ShapeInferenceContext, status: *mut TF_Status) {
    let Api { ops, status: statuses, .. } = api();
    // SAFETY: the context and the status of the call, and handles of this function.
    unsafe {
        let shape = (ops.TF_NewShapeHandle)();
        (ops.TF_ShapeInferenceContextGetInput)(context, 0, shape, status);
        let dim = (ops.TF_NewDimensionHandle)();
        (ops.TF_ShapeInferenceContextDim)(context, shape, 0, dim);
        if has(Defect::ShapeFails) && (ops.TF_DimensionHandleValueKnown)(dim) == 0 {
            (statuses.TF_SetStatus)(status, 3, c"no dimension".as_ptr());
        } else if !has(Defect::OutputWithoutAShape) {
            (ops.TF_ShapeInferenceContextSetOutput)(context, 0, shape, status);
        }
        (ops.TF_DeleteDimensionHandle)(dim);
        if !has(Defect::ShapeLeaks) {
            (ops.TF_DeleteShapeHandle)(shape);
        }
    }
}

unsafe extern "C" fn infer_nothing(_: *mut TF_ShapeInferenceContext, status: *mut TF_Status) {
    if !has(Defect::StatusNotSet) {
        // SAFETY: the status of the call.
        unsafe { (api().status.TF_SetStatus)(status, 0, c"".as_ptr()) };
    }
}

unsafe extern "C" fn create(context: *mut TF_OpKernelConstruction) -> *mut c_void {
    let (kernels, status) = (api().kernels, api().status);
    // SAFETY: the construction of the call, and a status and a buffer of this function.
    unsafe {
        let status_of_call = (status.TF_NewStatus)();
        let buffer = (kernels.TF_OpKernelConstruction_GetNodeDef)(context, status_of_call);
        if !has(Defect::BufferLeaks) {
            (BufferFunctions::get().unwrap().TF_DeleteBuffer)(buffer);
        }
        (status.TF_DeleteStatus)(status_of_call);
    }
    ptr::null_mut()
}

/// Doubles a vector of floats.
unsafe extern "C" fn compute(_: *mut c_void, context: *mut TF_OpKernelContext) {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let Api { kernels, tensors, status: statuses, .. } = api();
    // SAFETY: the context of the call, and a status and tensors of this function, which have as many elements as are read and
    // written. The host looks every handle up, also those of the defects.
    unsafe {
        let status = (statuses.TF_NewStatus)();
        let mut x = ptr::null_mut();
        (kernels.TF_GetInput)(context, 0, &raw mut x, status);
        let len = (tensors.TF_Dim)(x, 0);
        let mut dims = vec![len];
        if has(Defect::OutputOfAnotherShape) {
            dims.push(1);
        }
        if has(Defect::NegativeShape) {
            dims[0] = -1;
        }
        if has(Defect::IndexOutOfRange) {
            (kernels.TF_ExpectedOutputDataType)(context, 7);
        }
        let rank = dims.len() as i32;
        if has(Defect::OutputOfAnotherType) || has(Defect::OutputTooShort) {
            let (dtype, size) = match has(Defect::OutputTooShort) {
                true => (TF_FLOAT, 4),
                false => (TF_INT32, 4 * len as usize),
            };
            let other = (tensors.TF_AllocateTensor)(dtype, dims.as_ptr(), rank, size);
            (kernels.TF_SetOutput)(context, 0, other, status);
            (tensors.TF_DeleteTensor)(other);
            if has(Defect::OutputTooShort) {
                (statuses.TF_SetStatus)(status, 13, c"no output".as_ptr());
                (kernels.TF_OpKernelContext_Failure)(context, status);
            }
        } else if !has(Defect::OutputMissing) {
            let y =
                (kernels.TF_AllocateOutput)(context, 0, TF_FLOAT, dims.as_ptr(), rank, 0, status);
            if y.is_null() {
                (kernels.TF_OpKernelContext_Failure)(context, status);
            } else {
                let (from, to) = ((tensors.TF_TensorData)(x), (tensors.TF_TensorData)(y));
                let (from, to) = (from.cast::<f32>(), to.cast::<f32>());
                for at in 0..len as usize {
                    to.add(at).write(2.0 * from.add(at).read());
                }
                if has(Defect::OutputChanges) {
                    to.write(CALLS.fetch_add(1, Ordering::Relaxed) as f32);
                }
                if has(Defect::InputChanged) {
                    from.write(7.0);
                }
                if has(Defect::OutputTwice) {
                    (kernels.TF_SetOutput)(context, 0, y, status);
                }
                (tensors.TF_DeleteTensor)(y);
            }
        }
        if !has(Defect::InputLeaks) {
            (tensors.TF_DeleteTensor)(x);
        }
        if has(Defect::UsedAfterFree) {
            (tensors.TF_TensorData)(x);
        }
        if has(Defect::FreedTwice) {
            (tensors.TF_DeleteTensor)(x);
        }
        if has(Defect::NoTensor) {
            (tensors.TF_NumDims)(ptr::null());
        }
        (statuses.TF_DeleteStatus)(status);
    }
}

fn host() -> Host {
    static ONCE: Once = Once::new();
    let host = Host::new();
    ONCE.call_once(|| {
        register(c"DefectiveDouble", infer, true);
        register(c"DefectiveShapes", infer_nothing, false);
    });
    host
}

fn register(
    name: &CStr,
    infer: unsafe extern "C" fn(*mut TF_ShapeInferenceContext, *mut TF_Status),
    has_kernel: bool,
) {
    let Api { ops, kernels, status: statuses, .. } = api();
    // SAFETY: C strings, builders that the host frees when it registers them, and a status of this function.
    unsafe {
        let status = (statuses.TF_NewStatus)();
        let op = (ops.TF_NewOpDefinitionBuilder)(name.as_ptr());
        (ops.TF_OpDefinitionBuilderAddInput)(op, c"x: float".as_ptr());
        (ops.TF_OpDefinitionBuilderAddOutput)(op, c"y: float".as_ptr());
        (ops.TF_OpDefinitionBuilderSetShapeInferenceFunction)(op, Some(infer));
        (ops.TF_RegisterOpDefinition)(op, status);
        assert_eq!((statuses.TF_GetCode)(status), 0);
        if has_kernel {
            let cpu = c"CPU".as_ptr();
            let kernel = (kernels.TF_NewKernelBuilder)(
                name.as_ptr(),
                cpu,
                Some(create),
                Some(compute),
                None,
            );
            (kernels.TF_RegisterKernelBuilder)(name.as_ptr(), kernel, status);
            assert_eq!((statuses.TF_GetCode)(status), 0);
        }
        (statuses.TF_DeleteStatus)(status);
    }
}

fn violations(defect: Option<Defect>) -> Vec<Violation> {
    DEFECT.set(defect);
    let (result, violations) =
        host().call("DefectiveDouble").input([1.0_f32, 2.0]).run_with_violations();
    if defect.is_none() {
        assert_eq!(result.unwrap().numbers::<f32>(0).unwrap(), [2.0, 4.0]);
    }
    violations
}

#[test]
fn each_defect_is_found_and_named() {
    assert_eq!(violations(None), []);
    for &(defect, text) in DEFECTS.iter().filter(|(defect, _)| *defect != Defect::StatusNotSet) {
        let found = violations(Some(defect));
        let texts: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert!(texts.iter().any(|found| found.contains(text)), "{defect:?}: {texts:#?}");
        assert_eq!(texts.len(), 1, "{defect:?} is reported once: {texts:#?}");
    }
}

#[test]
fn a_shape_function_alone_is_checked_too() {
    let run = |defect| {
        std::panic::catch_unwind(|| {
            DEFECT.set(Some(defect));
            host().shapes("DefectiveShapes").input_shape([2]).infer()
        })
    };
    for defect in [Defect::OutputWithoutAShape, Defect::StatusNotSet] {
        let text = *run(defect).unwrap_err().downcast::<String>().unwrap();
        let wanted = DEFECTS.iter().find(|(one, _)| *one == defect).unwrap().1;
        assert!(text.contains(wanted), "{text}");
    }
}

#[test]
fn an_op_without_a_kernel_for_the_types_is_an_error() {
    let error = host().call("DefectiveShapes").input([1.0_f32]).run().unwrap_err();
    let text = "No registered 'DefectiveShapes' OpKernel for 'CPU' devices. Requested Attributes: . Registered: <no \
                registered kernels>";
    assert_eq!(error.message(), text);
    let error = host().call("NoSuchOp").run().unwrap_err();
    assert!(
        error.message().contains("Op type not registered 'NoSuchOp'; there are: `Defective"),
        "{error}"
    );
    let text = |call: crate::ops::Call| call.run().unwrap_err().message().to_owned();
    let call = || host().call("DefectiveDouble");
    assert_eq!(text(call()), "DefectiveDouble has 1 input(s), got 0; pass in this order: `x`");
    assert_eq!(
        text(call().input([1_i32])),
        "cannot compute DefectiveDouble as input #0(zero-based) was expected to be a float tensor but is a int32 tensor; it \
         is the input `x`"
    );
    assert_eq!(
        text(call().input([1.0_f32]).attr("n", 1)),
        "NodeDef mentions attr 'n' not in Op<DefectiveDouble>; its attributes are: none"
    );
}
