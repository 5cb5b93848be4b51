"""Scheduler configurations of earlier Kubernetes versions, written anew as ``v1``; pure.

Plain values in, plain values and remarks out. `files` tells the kinds of files apart. `versions`
converts ``KubeSchedulerConfiguration`` from v1alpha1 to v1beta3, `policy` converts Policy files and
algorithm providers. Both build on `profile`: the plugin lists and the arguments of one profile.
`remarks` are the comments of the written file. The names of the past are in `config.past`.
"""
