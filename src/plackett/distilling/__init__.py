"""From a trained network and a folder of pictures to a smaller network, with what proves it: `plackett distill`.

asked       what is to be done, as a person or a recipe says it; read without torch
terms       objectives by name, fitted to these networks and this teacher
gathered    teacher, student and pictures, opened and held against one another
shown       pictures that networks are tested on, of one pass for all of them
monitor     what is noticed of every student after an epoch
work        one distillation under way: the check, the pictures to test on, the teacher's answers
cohorts     one seed, from its first step or last checkpoint to what it leaves
run         all of it, and the student that is handed on
outcome     what came out, in a table and sentences; read without torch
"""
