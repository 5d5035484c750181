//! The models that are trained, and how fast the plugin is to be.

use super::Contestant;

/// A model of Keras, and of torchvision.
#[derive(Debug)]
pub struct Model {
    /// Its name in `keras.applications`, or `Transformer` for one block with 8 heads.
    pub name: &'static str,
    /// The largest size: the transformer's width, the edge of images.
    pub largest: usize,
    /// The least ratios to Keras on PyTorch, to PyTorch alone, and to Keras on JAX, in float32.
    goals: [Option<f64>; 3],
}

/// What is trained.
pub const MODELS: &[Model] = &[
    Model { name: "ResNet50", largest: 224, goals: [Some(1.0), Some(0.9), Some(0.8)] },
    Model { name: "MobileNetV2", largest: 224, goals: [Some(1.0), Some(0.7), None] },
    Model { name: "Transformer", largest: 512, goals: [Some(1.0), None, None] },
];

impl Model {
    /// The least ratio of the plugin's rate to a contestant's, if there is a goal.
    #[must_use]
    pub fn goal(&self, contestant: Contestant, precision: Precision) -> Option<f64> {
        let [torch, plain, jax] = self.goals;
        match (contestant, precision) {
            (Contestant::KerasOnTorch, Precision::Full) => torch,
            (Contestant::Torch, Precision::Full) => plain,
            (Contestant::KerasOnJax, Precision::Full) => jax,
            _ => None,
        }
    }
}

/// The policy of Keras, and of PyTorch's autocast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `float32`.
    Full,
    /// `mixed_float16`.
    Mixed,
}

impl Precision {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Full, Self::Mixed];

    /// The name of Keras' policy.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "float32",
            Self::Mixed => "mixed_float16",
        }
    }
}
