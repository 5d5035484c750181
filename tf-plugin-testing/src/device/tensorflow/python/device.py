# The device ---------------------------------------------------------------------------------------------------


@case
def python_device_is_listed(place):
    names = [device.name for device in tf.config.list_physical_devices(place.type)]
    same("the physical devices", names, ["/physical_device:%s:%d" % (place.type, n) for n in range(place.count)])
    names = [device.name for device in tf.config.list_logical_devices(place.type)]
    same("the logical devices", names, ["/device:%s:%d" % (place.type, n) for n in range(place.count)])


@case
def python_loaded_twice(place):
    load_library.load_pluggable_device_library(place.library)
    there_and_back(place, numbers((1000,)))


@case
def python_memory_info(place):
    name = place.device.replace("/device:", "")
    try:
        before = tf.config.experimental.get_memory_info(name)["current"]
    except (ValueError, errors.OpError) as error:
        raise Skip("the device gives no figures: %s" % plain(error))
    kept = place.put(np.zeros(4 << 20, np.uint8))
    after = tf.config.experimental.get_memory_info(name)["current"]
    if after < before + (4 << 20):
        raise Wrong("bytes in use after 4 MiB more", "at least %d" % (before + (4 << 20)), str(after))
    same("the tensor", kept.shape, (4 << 20,))
