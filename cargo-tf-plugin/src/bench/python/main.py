

def main():
    gc.disable()
    try:
        if JOB["ops"]:
            problem = ops()
        else:
            problem = filesystem() if JOB["scheme"] is not None else device()
        tell("Done" if problem is None else {"Problem": problem})
    except Stopped:
        tell("Stopped")
    except Exception as error:
        tell({"Problem": first_line(error)})
    REPORT.close()
    # What TensorFlow and the plugin do at the end of a process is not measured.
    os._exit(0)


main()
