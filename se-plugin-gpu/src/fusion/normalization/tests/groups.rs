//! Group normalization.

use super::*;

/// Group normalization of groups of 20 elements, and its gradient, as TensorFlow's own passes leave them.
const GROUPS: &str = "
    input Placeholder
    of_y Placeholder
    x Reshape input grouped
    dy Reshape of_y grouped
    scale Placeholder
    offset Placeholder
    mean Mean x group_axes
    squares SquaredDifference x mean
    variance Mean squares group_axes
    sum AddV2 variance epsilon
    root Rsqrt sum
    inverse Mul root scale
    of_x Mul x inverse
    negative Neg mean
    of_mean Mul negative inverse
    shift AddV2 of_mean offset
    y AddV2 of_x shift
    dx_direct Mul dy inverse
    kept_dy Sum dy places
    products Mul dy x
    kept_products Sum products places
    dnegative Mul kept_dy inverse
    kept_dnegative Sum dnegative of_group
    dmean Neg kept_dnegative
    mean_of_all Tile dmean group_times
    by_mean Mul mean_of_all part
    dmeans Mul kept_dy negative
    dinverse AddN dmeans kept_products
    droot Mul dinverse scale
    kept_droot Sum droot of_group
    dvariance RsqrtGrad root kept_droot
    variance_of_all Tile dvariance group_times
    by_variance Mul variance_of_all part
    difference Sub x mean
    twice Mul two by_variance
    dx_variance Mul twice difference
    dscales Mul dinverse root
    kept_dscale Sum dscales images
    kept_doffset Sum kept_dy images
    dx AddN dx_direct dx_variance by_mean
    used MatMul dx kept_dscale
    used_too MatMul y kept_doffset
";

const FOUND: [&str; 4] = [
    "mean RustGpuMoments x",
    "dx RustGpuGroupNormGrad x dy mean mean:1 scale",
    "used MatMul dx dx:1",
    "used_too MatMul y dx:2",
];

#[test]
fn both_ways_become_an_op_each() {
    let left = replaced(GROUPS);
    must_have(&left, &FOUND);
    assert_eq!(left.len(), 18, "{left:#?}");
    let mut graph = graph(GROUPS);
    replace(&mut graph, "MY_GPU").unwrap();
    let (moments, gradient) = (graph.node("mean").unwrap(), graph.node("dx").unwrap());
    assert_eq!(moments.attr::<i64>("axes").unwrap(), -2);
    assert_eq!(gradient.attr::<i64>("axes").unwrap(), 2);
    assert_eq!(gradient.attr::<f32>("epsilon").unwrap(), 0.5);
    assert_eq!(gradient.attr::<Vec<bool>>("keep_dims").unwrap(), [true, true]);
}

/// Where the number of images is not known, sums also name axes of one element.
#[test]
fn sums_over_axes_of_one_change_nothing() {
    let lines = GROUPS.replacen("Sum dnegative of_group", "Sum dnegative group_axes", 1);
    let sum = "of_dmeans Mul kept_dy negative\n    kept_dmeans Sum of_dmeans places";
    let lines = lines.replacen("dmeans Mul kept_dy negative", sum, 1);
    must_have(&replaced(&lines.replacen("AddN dmeans", "AddN kept_dmeans", 1)), &FOUND);
}

#[test]
fn a_layer_may_have_no_offset() {
    let lines = GROUPS.replacen("kept_doffset Sum kept_dy images", "kept_doffset Tanh y", 1);
    must_have(&replaced(&lines), &FOUND[..3]);
}

/// A gradient that differs in one factor, axis or operand is that of something else.
#[test]
fn what_differs_is_not_replaced() {
    for (from, to) in [
        ("twice Mul two by_variance", "twice Mul part by_variance"),
        ("by_mean Mul mean_of_all part", "by_mean Mul mean_of_all two"),
        ("kept_products Sum products places", "kept_products Sum products axes"),
        ("kept_dy Sum dy places", "kept_dy Sum dy images"),
        ("kept_dnegative Sum dnegative of_group", "kept_dnegative Sum dnegative images"),
        ("kept_droot Sum droot of_group", "kept_droot Sum droot images"),
        ("kept_dscale Sum dscales images", "kept_dscale Sum dscales places"),
        ("products Mul dy x", "products Mul dy y"),
        ("difference Sub x mean", "difference Sub mean x"),
        ("dmeans Mul kept_dy negative", "dmeans Mul kept_dy mean"),
        ("dmean Neg kept_dnegative", "dmean Neg dnegative"),
        ("dvariance RsqrtGrad root kept_droot", "dvariance RsqrtGrad scale kept_droot"),
        ("dx_direct Mul dy inverse", "dx_direct Mul dy root"),
        ("droot Mul dinverse scale", "droot Mul dinverse offset"),
        ("variance_of_all Tile dvariance group_times", "variance_of_all Tile dvariance times"),
        // The sum is used before the gradient is there.
        ("of_y Placeholder", "of_y Tanh kept_dscale"),
    ] {
        let lines = GROUPS.replacen(from, to, 1);
        assert_ne!(lines, GROUPS, "{from}");
        let left = replaced(&lines);
        assert!(!ops(&left).contains(&GROUP_GRADIENT), "{to}");
        must_have(&left, &FOUND[..1]);
    }
    // What has another rank than the axes tell has other groups.
    for (from, to) in [
        ("x Reshape input grouped", "x Reshape input kept"),
        ("x Reshape input grouped", "x Identity input"),
        ("variance Mean squares group_axes", "variance Mean squares places"),
        ("mean Mean x group_axes", "mean Mean x axes"),
    ] {
        let left = replaced(&GROUPS.replacen(from, to, 1));
        assert!(!ops(&left).contains(&MOMENTS), "{to}: {left:?}");
    }
}
