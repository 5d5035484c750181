# Programs -----------------------------------------------------------------------------------------------------


@case
def python_function(place):
    op = getattr(tf.raw_ops, place.has("AddV2", "Add", "Mul", "Sub"))

    @tf.function
    def program(x, y):
        with place.on():
            for _ in range(5):
                x = op(x=x, y=y)
        return x

    x, y = numbers((1000,)), numbers((1000,), seed=2)
    with tf.device(CPU):
        wanted = tf.constant(x)
        for _ in range(5):
            wanted = op(x=wanted, y=tf.constant(y))
    near("a function, from the host", program(tf.constant(x), tf.constant(y)).numpy(), wanted.numpy())
    near("a function, from the device", program(place.put(x), place.put(y)).numpy(), wanted.numpy())


@case
def python_function_with_copies(place):
    op = getattr(tf.raw_ops, place.has("AddV2", "Add", "Mul", "Sub"))

    @tf.function
    def program(x, y):
        for _ in range(10):
            with place.on():
                x = op(x=x, y=y)
            with tf.device(CPU):
                x = x / 2.5
        return x

    x, y = numbers((257,)), numbers((257,), seed=2)
    with tf.device(CPU):
        wanted = tf.constant(x)
        for _ in range(10):
            wanted = op(x=wanted, y=tf.constant(y)) / 2.5
    for _ in range(5):
        near("what goes to and fro", program(tf.constant(x), tf.constant(y)).numpy(), wanted.numpy())


@case
def python_gradient(place):
    op = place.has("Mul", "Tanh", "Square", "Sigmoid", "AddV2")
    x = numbers((100,))

    def slope(device):
        with tf.device(device), tf.GradientTape() as tape:
            value = tf.constant(x)
            tape.watch(value)
            result = getattr(tf.raw_ops, op)(x=value, y=value) if op in ("Mul", "AddV2") else getattr(tf.raw_ops, op)(x=value)
        return tape.gradient(result, value).numpy()

    # The gradient may need what the plugin has not.
    tf.config.set_soft_device_placement(True)
    try:
        near("the gradient of %s" % op, slope(place.device), slope(CPU))
    finally:
        tf.config.set_soft_device_placement(False)


@case
def python_chain_of_work(place):
    op = getattr(tf.raw_ops, place.has("AddV2", "Add"))
    x = place.put(np.zeros(10000, np.float32))
    one = place.put(np.ones(10000, np.float32))
    with place.on():
        for _ in range(500):
            x = op(x=x, y=one)
    same("500 steps without a look between them", set(x.numpy().tolist()), {500.0})


@case
def python_data_pipeline(place):
    batches = tf.data.Dataset.range(64).map(lambda n: tf.cast(n, tf.float32)).batch(8).prefetch(2)
    seen = [place.put(batch.numpy()).numpy().tolist() for batch in batches]
    same("the batches", sum(seen, []), [float(n) for n in range(64)])


@case
def python_session(place):
    op = getattr(tf.raw_ops, place.has("AddV2", "Add", "Mul", "Sub"))
    ends = []
    with tf.Graph().as_default() as graph:
        x, y = (tf.compat.v1.placeholder(tf.float32) for _ in range(2))
        for device in (place.device, CPU):
            end = x
            for _ in range(10):
                with tf.device(device):
                    end = op(x=end, y=y)
                with tf.device(CPU):
                    end = end * 0.5
            ends.append(end)
    with tf.compat.v1.Session(graph=graph) as session:

        def work(thread):
            for step in range(10):
                feed = {x: numbers((1003,), seed=step), y: numbers((1003,), seed=100 + thread)}
                near("a session", *session.run(ends, feed))

        work(0)
        wrong = {x: numbers((2,)), y: numbers((3,))}
        fails("shapes that do not fit, in a session", errors.InvalidArgumentError, session.run, ends[0], wrong)
        in_threads(8, work)
