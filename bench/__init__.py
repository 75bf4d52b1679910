"""Ours, the peers and the limits, measured side by side in one run: `make bench`.

contender.py, contenders/, limits/     who takes part: one small file each, the same few methods
node/, node_peer.py                    peers on Node.js, which speak JSON over a pipe
workload.py, workloads/                what is measured; add a file, and name it in the list
spark_contender.py, reminders.py       contenders on Spark: one session, the same messages
servers.py, debian.py                  an empty store for each measurement; programs to unpack
running.py, measure.py, partner.py     rounds; one measurement; its second process
results.py, report.py, plots.py, publish.py
retention/                              a week of messages, from offer to report
"""
