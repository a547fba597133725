"""Converts published data into files of measurements: python3 -m convert DATA INTO"""

import sys

from convert import collectives, examples, golden, jobs, open_serving, pairs, serving

if __name__ == "__main__":
    data, into = sys.argv[1:]
    try:
        for source in (jobs, examples, golden, collectives, pairs, serving, open_serving):
            source.convert(data, into)
    except KeyError as column:
        sys.exit(f"{data}: a table has no column {column}")
