import tensorflow as tf

x = tf.ones([8, 4])
w = tf.Variable(tf.ones([4, 2]))

@tf.function
def step(x):
    return tf.math.lgamma(tf.matmul(x, w)) * 2.0

@tf.function
def whole_numbers(x):
    whole = tf.cast(x, tf.int32)
    return tf.maximum(whole, 3)

for _ in range(3):
    step(x)
whole_numbers(x)
a = tf.math.lgamma(x)
b = x + a
b = b + a
with tf.device('/device:RUST_REF:0'):
    c = tf.identity(tf.complex(tf.ones([2, 3, 3], tf.float64), tf.ones([2, 3, 3], tf.float64)))
d = tf.matmul(c, c)
print('the script says this')
