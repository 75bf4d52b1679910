"""DueQueue, its peers and the limits, measured side by side in one run by `make bench`.

contender.py, contenders/, limits/     the contenders, one small file each, with the same methods
node/, node_peer.py                    peers on Node.js, which speak JSON over a pipe
workload.py, workloads/                the workloads; to add one, add a file and list it
spark_contender.py, reminders.py       contenders on Spark, with one session and the same messages
servers.py, debian.py                  an empty store for each measurement, unpacked programs
running.py, measure.py, partner.py     the rounds, one measurement, its second process
results.py, report.py, plots.py, publish.py
retention/                              a week of messages, from offer to report
timers/                                 timers in memory, from a thousand to a million items
"""
