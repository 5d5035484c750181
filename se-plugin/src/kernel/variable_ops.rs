//! The ops on variables that need the variable's memory: the table behind the failing kernels and the graph pass.

use tf_op_plugin::DType;

/// An op that reads or changes variables in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VariableOp {
    pub(crate) op: &'static str,
    /// The attribute with the type of the variables, or `None` for the state of random numbers, which is int64.
    pub(crate) dtype: Option<&'static str>,
    /// The inputs that are handles of variables. They come first.
    pub(crate) handles: &'static [&'static str],
    /// The other inputs.
    pub(crate) inputs: &'static [&'static str],
    pub(crate) output: Output,
    /// Whether it changes the variables.
    pub(crate) writes: bool,
    /// How devices compute the same from values instead of variables.
    pub(crate) recipe: Recipe,
    /// What users call.
    method: &'static str,
    /// What users can write instead, or "".
    instead: &'static str,
}

/// What an op returns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    Nothing,
    Typed(DType),
    /// Values of the type in this attribute.
    Attribute(&'static str),
}

/// How a device computes the result of an op on variables from the values of the variables.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Recipe {
    /// Only on the CPU.
    None,
    /// By this op, whose first input is the value, of the type in the second.
    Op(&'static str, &'static str),
    /// By `GatherV2`, along the axis `batch_dims`.
    Gather,
    /// By this op, one of `TensorScatter…`, whose indices have one more dimension.
    Scatter(&'static str),
    /// By arithmetic, in reverse Polish notation. Names are inputs or earlier results, and `=name` names a result.
    Formula(&'static str),
    /// By the first if the boolean attribute is true, else by the second.
    FormulaIf(&'static str, &'static str, &'static str),
}

/// The state of a generator of random numbers.
const STATE: DType = DType::Int64;

const OPTIMIZER: VariableOp = VariableOp {
    op: "",
    dtype: Some("T"),
    handles: &["var"],
    inputs: &[],
    output: Output::Nothing,
    writes: true,
    recipe: Recipe::None,
    method: "",
    instead: "",
};

const fn optimizer(
    op: &'static str,
    handles: &'static [&'static str],
    inputs: &'static [&'static str],
    recipe: Recipe,
) -> VariableOp {
    VariableOp { op, handles, inputs, recipe, method: op, ..OPTIMIZER }
}

const fn scatter(
    op: &'static str,
    method: &'static str,
    instead: &'static str,
    recipe: Recipe,
) -> VariableOp {
    let dtype = Some("dtype");
    let (handles, inputs): (&[_], &[_]) = (&["resource"], &["indices", "updates"]);
    VariableOp { op, dtype, handles, inputs, recipe, method, instead, ..OPTIMIZER }
}

const fn scatter_nd(
    op: &'static str,
    method: &'static str,
    instead: &'static str,
    by: &'static str,
) -> VariableOp {
    let recipe = Recipe::Op(by, "T");
    VariableOp { dtype: Some("T"), handles: &["ref"], ..scatter(op, method, instead, recipe) }
}

const fn update(
    op: &'static str,
    method: &'static str,
    instead: &'static str,
    by: &'static str,
) -> VariableOp {
    VariableOp { inputs: &["value"], ..scatter(op, method, instead, Recipe::Op(by, "T")) }
}

const fn gather(
    op: &'static str,
    method: &'static str,
    instead: &'static str,
    recipe: Recipe,
) -> VariableOp {
    let output = Output::Attribute("dtype");
    VariableOp {
        inputs: &["indices"],
        output,
        writes: false,
        ..scatter(op, method, instead, recipe)
    }
}

const fn random(op: &'static str, inputs: &'static [&'static str], output: Output) -> VariableOp {
    VariableOp {
        op,
        dtype: None,
        handles: &["resource"],
        inputs,
        output,
        method: "`tf.random.Generator`",
        instead: "create the generator within `with tf.device(\"/device:CPU:0\")`",
        ..OPTIMIZER
    }
}

const SAMPLE: &[&str] = &["algorithm", "shape"];
const SAMPLED: Output = Output::Attribute("dtype");

use Recipe::{Formula, FormulaIf, Gather, Op, Scatter};

/// Formulas that several optimizers share: steps of averages, and of Adam's rate.
macro_rules! formula {
    ($($text:expr),*) => { concat!($($text, " "),*) };
}
macro_rules! adam_moments {
    () => {
        formula!(
            "lr 1 beta2_power - sqrt * 1 beta1_power - / =rate",
            "m grad m - 1 beta1 - * + =m",
            "v grad square v - 1 beta2 - * + =v"
        )
    };
}
macro_rules! mean_of_squares {
    () => {
        "ms grad square ms - 1 rho - * + =ms"
    };
}

/// All such ops.
#[rustfmt::skip]
pub(crate) static VARIABLE_OPS: [VariableOp; 57] = [
    update("AssignAddVariableOp", "`assign_add`", "`v.assign(v + d)` in place of `v.assign_add(d)`", "AddV2"),
    update("AssignSubVariableOp", "`assign_sub`", "`v.assign(v - d)` in place of `v.assign_sub(d)`", "Sub"),
    gather("ResourceGather", "`tf.gather`", "`tf.gather(v.read_value(), …)`", Gather),
    gather("ResourceGatherNd", "`tf.gather_nd`", "`tf.gather_nd(v.read_value(), …)`", Op("GatherNd", "Tparams")),
    scatter("ResourceScatterAdd", "`scatter_add`", "`v.assign(tf.tensor_scatter_nd_add(v, indices[..., None], updates))`", Scatter("TensorScatterAdd")),
    scatter("ResourceScatterSub", "`scatter_sub`", "`v.assign(tf.tensor_scatter_nd_sub(v, indices[..., None], updates))`", Scatter("TensorScatterSub")),
    scatter("ResourceScatterMul", "`scatter_mul`", "", Recipe::None),
    scatter("ResourceScatterDiv", "`scatter_div`", "", Recipe::None),
    scatter("ResourceScatterMin", "`scatter_min`", "`v.assign(tf.tensor_scatter_nd_min(v, indices[..., None], updates))`", Scatter("TensorScatterMin")),
    scatter("ResourceScatterMax", "`scatter_max`", "`v.assign(tf.tensor_scatter_nd_max(v, indices[..., None], updates))`", Scatter("TensorScatterMax")),
    scatter("ResourceScatterUpdate", "`scatter_update`", "`v.assign(tf.tensor_scatter_nd_update(v, indices[..., None], updates))`", Scatter("TensorScatterUpdate")),
    scatter_nd("ResourceScatterNdAdd", "`scatter_nd_add`", "`v.assign(tf.tensor_scatter_nd_add(v, indices, updates))`", "TensorScatterAdd"),
    scatter_nd("ResourceScatterNdSub", "`scatter_nd_sub`", "`v.assign(tf.tensor_scatter_nd_sub(v, indices, updates))`", "TensorScatterSub"),
    scatter_nd("ResourceScatterNdMin", "`scatter_nd_min`", "`v.assign(tf.tensor_scatter_nd_min(v, indices, updates))`", "TensorScatterMin"),
    scatter_nd("ResourceScatterNdMax", "`scatter_nd_max`", "`v.assign(tf.tensor_scatter_nd_max(v, indices, updates))`", "TensorScatterMax"),
    scatter_nd("ResourceScatterNdUpdate", "`scatter_nd_update`", "`v.assign(tf.tensor_scatter_nd_update(v, indices, updates))`", "TensorScatterUpdate"),
    VariableOp {
        inputs: &["begin", "end", "strides", "value"],
        ..scatter_nd("ResourceStridedSliceAssign", "`v[…].assign`", "`v.assign(tf.tensor_scatter_nd_update(v, …))`", "TensorStridedSliceUpdate")
    },
    VariableOp {
        dtype: Some("T"), inputs: &[], output: Output::Attribute("T"),
        ..scatter("ResourceCountUpTo", "`count_up_to`", "", Recipe::None)
    },
    random("RngReadAndSkip", &["alg", "delta"], Output::Typed(STATE)),
    random("RngSkip", &["algorithm", "delta"], Output::Nothing),
    random("StatefulRandomBinomial", &["algorithm", "shape", "counts", "probs"], SAMPLED),
    random("StatefulStandardNormal", &["shape"], SAMPLED),
    random("StatefulStandardNormalV2", SAMPLE, SAMPLED),
    random("StatefulTruncatedNormal", SAMPLE, SAMPLED),
    random("StatefulUniform", SAMPLE, SAMPLED),
    random("StatefulUniformFullInt", SAMPLE, SAMPLED),
    random("StatefulUniformInt", &["algorithm", "shape", "minval", "maxval"], SAMPLED),
    optimizer("ResourceApplyGradientDescent", &["var"], &["alpha", "delta"], Formula("var alpha delta * - =var")),
    optimizer("ResourceApplyMomentum", &["var", "accum"], &["lr", "grad", "momentum"], FormulaIf(
        "use_nesterov",
        "accum momentum * grad + =accum var grad lr * accum momentum * lr * + - =var",
        "accum momentum * grad + =accum var accum lr * - =var",
    )),
    optimizer("ResourceApplyKerasMomentum", &["var", "accum"], &["lr", "grad", "momentum"], FormulaIf(
        "use_nesterov",
        "accum momentum * grad lr * - =accum var accum momentum * grad lr * - + =var",
        "accum momentum * grad lr * - =accum var accum + =var",
    )),
    optimizer("ResourceApplyAdam", &["var", "m", "v"], &["beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"], FormulaIf(
        "use_nesterov",
        formula!(adam_moments!(), "var grad 1 beta1 - * beta1 m * + rate * v sqrt epsilon + / - =var"),
        formula!(adam_moments!(), "var m rate * v sqrt epsilon + / - =var"),
    )),
    optimizer("ResourceApplyAdamWithAmsgrad", &["var", "m", "v", "vhat"], &["beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"], Formula(
        formula!(adam_moments!(), "vhat v max =vhat var m rate * vhat sqrt epsilon + / - =var"),
    )),
    optimizer("ResourceApplyAdaMax", &["var", "m", "v"], &["beta1_power", "lr", "beta1", "beta2", "epsilon", "grad"], Formula(
        "m grad m - 1 beta1 - * + =m beta2 v * grad abs max =v var lr 1 beta1_power - / m v epsilon + / * - =var",
    )),
    optimizer("ResourceApplyAdagrad", &["var", "accum"], &["lr", "grad"], FormulaIf(
        "update_slots",
        "accum grad square + =accum var grad lr * accum rsqrt * - =var",
        "var grad lr * accum rsqrt * - =var",
    )),
    optimizer("ResourceApplyAdagradV2", &["var", "accum"], &["lr", "epsilon", "grad"], FormulaIf(
        "update_slots",
        "accum grad square + =accum var grad lr * accum sqrt epsilon + / - =var",
        "var grad lr * accum sqrt epsilon + / - =var",
    )),
    optimizer("ResourceApplyAdadelta", &["var", "accum", "accum_update"], &["lr", "rho", "epsilon", "grad"], Formula(formula!(
        "accum rho * grad square 1 rho - * + =accum",
        "accum_update epsilon + sqrt accum epsilon + rsqrt * grad * =update",
        "var update lr * - =var",
        "accum_update rho * update square 1 rho - * + =accum_update"
    ))),
    optimizer("ResourceApplyRMSProp", &["var", "ms", "mom"], &["lr", "rho", "momentum", "epsilon", "grad"], Formula(formula!(
        mean_of_squares!(), "mom momentum * grad lr * ms epsilon + sqrt / + =mom var mom - =var"
    ))),
    optimizer("ResourceApplyCenteredRMSProp", &["var", "mg", "ms", "mom"], &["lr", "rho", "momentum", "epsilon", "grad"], Formula(formula!(
        mean_of_squares!(), "mg grad mg - 1 rho - * + =mg",
        "mom momentum * grad lr * ms mg square - epsilon + sqrt / + =mom var mom - =var"
    ))),
    optimizer("ResourceApplyAdagradDA", &["var", "gradient_accumulator", "gradient_squared_accumulator"], &["grad", "lr", "l1", "l2", "global_step"], Recipe::None),
    optimizer("ResourceApplyAddSign", &["var", "m"], &["lr", "alpha", "sign_decay", "beta", "grad"], Recipe::None),
    optimizer("ResourceApplyPowerSign", &["var", "m"], &["lr", "logbase", "sign_decay", "beta", "grad"], Recipe::None),
    optimizer("ResourceApplyFtrl", &["var", "accum", "linear"], &["grad", "lr", "l1", "l2", "lr_power"], Recipe::None),
    optimizer("ResourceApplyFtrlV2", &["var", "accum", "linear"], &["grad", "lr", "l1", "l2", "l2_shrinkage", "lr_power"], Recipe::None),
    optimizer("ResourceApplyProximalAdagrad", &["var", "accum"], &["lr", "l1", "l2", "grad"], Recipe::None),
    optimizer("ResourceApplyProximalGradientDescent", &["var"], &["alpha", "l1", "l2", "delta"], Recipe::None),
    optimizer("ResourceSparseApplyAdadelta", &["var", "accum", "accum_update"], &["lr", "rho", "epsilon", "grad", "indices"], Recipe::None),
    optimizer("ResourceSparseApplyAdagrad", &["var", "accum"], &["lr", "grad", "indices"], Recipe::None),
    optimizer("ResourceSparseApplyAdagradV2", &["var", "accum"], &["lr", "epsilon", "grad", "indices"], Recipe::None),
    optimizer("ResourceSparseApplyAdagradDA", &["var", "gradient_accumulator", "gradient_squared_accumulator"], &["grad", "indices", "lr", "l1", "l2", "global_step"], Recipe::None),
    optimizer("ResourceSparseApplyCenteredRMSProp", &["var", "mg", "ms", "mom"], &["lr", "rho", "momentum", "epsilon", "grad", "indices"], Recipe::None),
    optimizer("ResourceSparseApplyFtrl", &["var", "accum", "linear"], &["grad", "indices", "lr", "l1", "l2", "lr_power"], Recipe::None),
    optimizer("ResourceSparseApplyFtrlV2", &["var", "accum", "linear"], &["grad", "indices", "lr", "l1", "l2", "l2_shrinkage", "lr_power"], Recipe::None),
    optimizer("ResourceSparseApplyKerasMomentum", &["var", "accum"], &["lr", "grad", "indices", "momentum"], Recipe::None),
    optimizer("ResourceSparseApplyMomentum", &["var", "accum"], &["lr", "grad", "indices", "momentum"], Recipe::None),
    optimizer("ResourceSparseApplyProximalAdagrad", &["var", "accum"], &["lr", "l1", "l2", "grad", "indices"], Recipe::None),
    optimizer("ResourceSparseApplyProximalGradientDescent", &["var"], &["alpha", "l1", "l2", "grad", "indices"], Recipe::None),
    optimizer("ResourceSparseApplyRMSProp", &["var", "ms", "mom"], &["lr", "rho", "momentum", "epsilon", "grad", "indices"], Recipe::None),
];

impl VariableOp {
    /// Returns the entry of an op.
    pub(crate) fn of(op: &str) -> Option<&'static Self> {
        // Nearly all nodes of a graph are other ops.
        let may_be =
            ["Resource", "Assign", "Rng", "Stateful"].iter().any(|start| op.starts_with(start));
        VARIABLE_OPS.iter().filter(|_| may_be).find(|one| one.op == op)
    }

    /// Returns which input selects rows of the variables, if the op is about rows.
    pub(crate) fn rows(&self) -> Option<usize> {
        let is_of_rows = self.op.starts_with("ResourceSparseApply") || self.handles == ["resource"];
        let at = self.inputs.iter().position(|&input| input == "indices");
        at.filter(|_| is_of_rows && self.writes)
    }

    /// Returns what failed, why, and what to do. `host_has_variables`: the plugin could have a kernel for the op.
    pub(crate) fn error(&self, device: &str, dtype: DType, host_has_variables: bool) -> String {
        let Self { op, method, instead, .. } = self;
        let method = if method == op { format!("`{op}`") } else { String::from(*method) };
        let (why, kernel) = match host_has_variables {
            true => (
                format!("the plugin has no kernel `{op}` of {dtype}"),
                "add one with `variables`, ",
            ),
            false => (
                String::from(
                    "this TensorFlow does not let plugins read or change a variable in place",
                ),
                "",
            ),
        };
        let instead = match instead.starts_with('`') {
            true => format!("write {instead}"),
            false if instead.is_empty() => {
                String::from("create the variable within `with tf.device(\"/device:CPU:0\")`")
            }
            false => String::from(*instead),
        };
        format!(
            "{method} failed on a variable of {dtype} on {device}: {why}; {kernel}do it in a `tf.function` (in Keras: \
             without `run_eagerly=True`), or {instead}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_op_is_found_and_listed_once() {
        for (at, one) in VARIABLE_OPS.iter().enumerate() {
            assert_eq!(
                VARIABLE_OPS.iter().position(|other| other.op == one.op),
                Some(at),
                "{}",
                one.op
            );
            assert!(VariableOp::of(one.op).is_some_and(|found| found.op == one.op), "{}", one.op);
        }
        assert!(
            VariableOp::of("MatMul").is_none()
                && VariableOp::of("ResourceConditionalAccumulator").is_none()
        );
    }

    #[test]
    fn ops_on_rows_name_their_indices() {
        let rows = |op| VariableOp::of(op).unwrap().rows();
        assert_eq!(rows("ResourceScatterDiv"), Some(0));
        assert_eq!(rows("ResourceSparseApplyAdagrad"), Some(2));
        for op in ["ResourceScatterNdAdd", "ResourceGather", "ResourceApplyAdam", "RngSkip"] {
            assert_eq!(rows(op), None, "{op}");
        }
    }

    #[test]
    fn the_error_says_what_to_write() {
        let error = |op, host| VariableOp::of(op).unwrap().error("MY_NPU", DType::Float32, host);
        for (op, expected) in [
            ("AssignSubVariableOp", "or write `v.assign(v - d)` in place of `v.assign_sub(d)`"),
            ("ResourceGather", "or write `tf.gather(v.read_value(), …)`"),
            (
                "ResourceScatterDiv",
                "or create the variable within `with tf.device(\"/device:CPU:0\")`",
            ),
            (
                "RngReadAndSkip",
                "or create the generator within `with tf.device(\"/device:CPU:0\")`",
            ),
            (
                "ResourceApplyAdam",
                "`ResourceApplyAdam` failed on a variable of float32 on MY_NPU: ",
            ),
        ] {
            let (without, with) = (error(op, false), error(op, true));
            for text in [&without, &with] {
                assert!(text.contains(expected) && text.contains("in a `tf.function`"), "{text}");
            }
            assert!(without.contains("this TensorFlow does not let plugins"), "{without}");
            assert!(
                with.contains(&format!("no kernel `{op}` of float32; add one with `variables`")),
                "{with}"
            );
        }
    }
}
