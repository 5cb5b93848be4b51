"""Admission webhooks: programs that are asked over HTTPS before an object is stored.

Place in the flow: `moorage_sandbox.apiserver.admission` asks `admission` here for each write while
there are webhooks. A verb never waits. Where the answer of a webhook is missing, it raises
`answers.AnswersNeeded`: nothing has been changed. `gathering` then asks the webhooks over `https`,
while nothing is held, and the call is answered once more, with the answers so far. A review with
another content is another question, so an object that changed meanwhile is asked about again.

`reviews` writes AdmissionReviews and reads their answers, `addresses` finds where a webhook
listens, and `stored` has the configurations. `conversions` has the objects of a watch converted;
`moorage_sandbox.apiserver.custom.converter` writes the reviews of conversions.

What belongs here: calls to programs of others. The kinds of the configurations belong to
`moorage.policies`.
"""
