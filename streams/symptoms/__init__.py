"""Give each fault a stable code, `MR-0xx`, and find the section of a page that explains it.

    symptom     the fields of a symptom: code, meaning, page, and how its messages are recognised
    table       all symptoms; the one place where codes are given
    class_messages   parts of messages whose code is that of the error's class
    lookup      which symptom an error or a message is, and which code was probably meant
    pages       the section of docs/troubleshooting about a code, also from an installed package

Start reading at `table`. Messages stay as they are where they are raised: a code is found by the
class of an error and by what never changes in its message, so that the log of a worker, its last
line, `millrace explain-error` and `millrace logs analyze` agree (docs/decisions/0095).
"""
