"""Asks webhooks about a write: those that may change its object, then those that may refuse it.

Place in the flow: the verbs ask here while there are webhooks. Where an answer is missing,
`AnswersNeeded` is raised and nothing has been changed. Mirrors kubernetes v1.36 apiserver
pkg/admission/plugin/webhook: generic/webhook.go and the dispatchers of both kinds.
"""

from __future__ import annotations

import copy
from typing import Final

import msgspec

from moorage.api.resources import (
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    ResourceType,
)
from moorage.cel.authorizer import Authorize, authorizer_values
from moorage.cel.budget import USED_UP
from moorage.cel.runtime import is_installed
from moorage.kinds.kind import Obj
from moorage.kinds.status import StatusError, forbidden, internal
from moorage.kinds.tree import number, strings, text
from moorage.policies.bound import GROUP
from moorage.policies.expressions import Failed, applies, evaluate_with_rights, missing
from moorage.policies.matching import Write, resource_for
from moorage.policies.mutating_chain import ClientStep, Invocations
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.policies.noting import Notes
from moorage_sandbox.apiserver.webhooks.addresses import HookAddresses
from moorage_sandbox.apiserver.webhooks.answers import (
    AnswersNeeded,
    HookError,
    Question,
    current_answers,
)
from moorage_sandbox.apiserver.webhooks.options import options_of
from moorage_sandbox.apiserver.webhooks.patches import patched_object
from moorage_sandbox.apiserver.webhooks.reviews import (
    Response,
    Subject,
    no_dry_run,
    read_response,
    rejection,
    review_of,
    review_version,
)
from moorage_sandbox.apiserver.webhooks.stored import Hook, StoredHooks
from moorage_sandbox.apiserver.world import World

MUTATIONS: Final = "mutation.webhook.admission.k8s.io"
"""Audit annotations about the webhooks that may change an object."""
VALIDATIONS: Final = "validating.webhook.admission.k8s.io"
"""Audit annotations about the webhooks that may refuse a write."""
_WITHOUT_EFFECTS: Final = ("None", "NoneOnDryRun")
_TIMEOUT_SECONDS: Final = 10


class Webhooks:
    """The webhooks of the stored configurations.

    Parameters
    ----------
    world
        Holds the configurations.
    notes
        Takes warnings and audit annotations.
    addresses
        The places where webhooks listen.
    authorize
        Decides about the rights that match conditions ask about.

    Attributes
    ----------
    shelves
        The configurations: while all are empty, no webhook is asked about anything.
    """

    def __init__(
        self, world: World, notes: Notes, addresses: HookAddresses, authorize: Authorize
    ) -> None:
        self._authorize = authorize
        self._world = world
        self._notes = notes
        self._addresses = addresses
        self._mutating = StoredHooks(world, MUTATING_WEBHOOK_CONFIGURATIONS)
        self._validating = StoredHooks(world, VALIDATING_WEBHOOK_CONFIGURATIONS)
        self.shelves = (self._mutating.shelf, self._validating.shelf)
        notes.sources += self.shelves

    def step(
        self, served: Served, kind: ResourceType, *, name: str, dry_run: bool
    ) -> ClientStep | None:
        """Return the step of mutating webhooks for a write; None where none is asked about it.

        The step raises `StatusError` as a webhook says, or 500: it gives no answer, or a patch that
        does not apply. It raises `AnswersNeeded` where a webhook has to answer first, and
        `moorage.cel.evaluators.TooLongHere` where match conditions may take long, and the caller is
        in the loop.

        Parameters
        ----------
        served
            The resource as it is called.
        kind
            Type of the objects of the write.
        name
            Name of the object, as the call has it.
        dry_run
            Nothing will be stored.
        """
        if not self._mutating.shelf or not _are_asked(served):
            return None

        def changed(write: Write, invocations: Invocations) -> Write:
            subject = self._subject(write, kind, name=name, dry_run=dry_run)
            return self._mutated(served, subject, invocations)

        return changed

    def validate(
        self, served: Served, kind: ResourceType, write: Write, *, name: str, dry_run: bool
    ) -> None:
        """Refuse a write that a webhook denies; all webhooks are asked at the same time.

        The parameters are those of `step`.

        Raises
        ------
        StatusError, AnswersNeeded, moorage.cel.evaluators.TooLongHere
            As `step`.
        """
        if self._validating.shelf and _are_asked(served):
            subject = self._subject(write, kind, name=name, dry_run=dry_run)
            self._check_all(served, subject)

    def _subject(self, write: Write, kind: ResourceType, *, name: str, dry_run: bool) -> Subject:
        """Return a write as webhooks see it."""
        answers = current_answers()
        assert answers is not None, "webhooks are asked"
        return Subject(
            write=write,
            kind=kind,
            name=name,
            options=options_of(answers.request, write.operation),
            user=self._world.caller,
            dry_run=dry_run,
        )

    def _mutated(self, served: Served, subject: Subject, invocations: Invocations) -> Write:
        """Return a write as webhooks change it in one round of the chain."""
        for hook in self._mutating.hooks():
            if not invocations.is_due(hook.identity):
                continue
            after = self._changed(served, hook, subject, invocations.round)
            if after is None:
                continue
            changed = after.write.new != subject.write.new
            reinvocable = text(hook.fields, "reinvocationPolicy") == "IfNeeded"
            invocations.add(hook.identity, changed=changed, reinvocable=reinvocable)
            subject = after
        return subject.write

    def _changed(self, served: Served, hook: Hook, subject: Subject, round_: int) -> Subject | None:
        """Return a write as a webhook changes it; None for a webhook that is not about it."""
        called = self._called(served, hook, subject)
        if called is None:
            return None
        visit = _Visit(hook, _as_called(subject, served, called), called, MUTATIONS, round_)
        new = self._new_object(visit)
        if not subject.has_body:
            new = _converted(new, called, served)
        changed = new is not None and new != subject.write.new
        value = {"configuration": hook.configuration, "webhook": hook.name, "mutated": changed}
        self._notes.annotate(visit.place, msgspec.json.encode(value).decode())
        if not changed or new is None:
            return subject
        return msgspec.structs.replace(subject, write=subject.write.with_new(new))

    def _new_object(self, visit: _Visit) -> Obj | None:
        """Return the object as a webhook changes it, in the version that it is called with."""
        new = visit.subject.write.new
        try:
            response = self._response(visit)
            if not response.patch:
                return new
            return patched_object(visit.hook.name, visit.subject, visit.called, response)
        except HookError as error:
            self._go_on_without(visit, error)
            return new

    def _check_all(self, served: Served, subject: Subject) -> None:
        """Refuse a write that a webhook denies."""
        questions: list[Question] = []
        refusals: list[StatusError] = []
        for hook in self._validating.hooks():
            called = self._called(served, hook, subject)
            if called is None:
                continue
            visit = _Visit(hook, _as_called(subject, served, called), called, VALIDATIONS, 0)
            try:
                self._check(visit)
            except AnswersNeeded as needed:
                questions += needed.questions
            except StatusError as refusal:
                refusals.append(refusal)
        if questions:
            raise AnswersNeeded(questions)
        if refusals:
            raise refusals[0]

    def _check(self, visit: _Visit) -> None:
        try:
            self._response(visit)
        except HookError as error:
            self._go_on_without(visit, error)

    def _called(self, served: Served, hook: Hook, subject: Subject) -> Served | None:
        """Return the resource that a webhook is called with; None where it is not called."""
        equivalents = self._world.catalog.equivalents(served)
        resource = resource_for(hook.fields, subject.write, equivalents)
        if resource is None:
            return None
        called = self._world.catalog.find(resource.api_version, resource.plural)
        if hook.conditions.match_conditions:
            seen = _as_called(subject, served, called)
            if not self._meets_conditions(hook, seen, called.kind.resource):
                return None
        return called

    def _meets_conditions(self, hook: Hook, subject: Subject, called: ResourceType) -> bool:
        """Whether the match conditions of a webhook hold.

        Raises
        ------
        StatusError
            403: that is not known, and the webhook has to be asked.
        """
        result = _conditions_hold(hook, subject, called, self._authorize)
        if isinstance(result, bool):
            return result
        if not hook.fails_open:
            resource = subject.write.resource
            why = f'webhook "{hook.name}": {result.message}'
            raise forbidden(resource, subject.name, why)
        self._notes.add_warning(
            f'{hook.configuration}: webhook "{hook.name}" was not called: {result.message}'
        )
        return False

    def _response(self, visit: _Visit) -> Response:
        """Return what a webhook says about a write that it allows.

        Raises
        ------
        HookError
            The webhook gives no answer, or none that can be read.
        StatusError
            The webhook refuses the write.
        AnswersNeeded
            The webhook has not been asked.
        """
        hook, subject = visit.hook, visit.subject
        if subject.dry_run and text(hook.fields, "sideEffects") not in _WITHOUT_EFFECTS:
            raise no_dry_run(hook.name)
        version = review_version(strings(hook.fields, "admissionReviewVersions"))
        question = Question(
            about=visit.about,
            endpoint=self._addresses.endpoint(hook.client),
            timeout_seconds=number(hook.fields, "timeoutSeconds") or _TIMEOUT_SECONDS,
            review=review_of(subject, visit.called.kind.resource, version),
        )
        answers = current_answers()
        assert answers is not None, "there is a subject"
        answer = answers.answer_to(question)
        if answer is None:
            raise AnswersNeeded([question])
        response = read_response(answer, version, mutating=visit.kind == MUTATIONS)
        notes = sorted((response.audit_annotations or {}).items())
        self._notes.add_annotations(hook.name, notes)
        for warning in filter(None, response.warnings or ()):
            self._notes.add_warning(warning)
        if not response.allowed:
            raise rejection(hook.name, response.status)
        return response

    def _go_on_without(self, visit: _Visit, error: HookError) -> None:
        """Note that a webhook was not asked, or refuse the write, as its failure policy says."""
        hook = visit.hook
        message = f'failed calling webhook "{hook.name}": {error}'
        if not hook.fails_open:
            raise internal(message) from error
        self._notes.add_warning(f"{hook.configuration}: {message}; the write goes on without it")
        self._notes.annotate(f"failed-open.{visit.place}", hook.name)


def _are_asked(served: Served) -> bool:
    """Whether webhooks are asked about a write of a resource."""
    answers = current_answers()
    # Not about a write of the server itself, nor about one that could repair a webhook.
    return answers is not None and not answers.reviewed and served.kind.resource.group != GROUP


class _Visit(msgspec.Struct, frozen=True):
    """One call of one webhook about one write.

    Parameters
    ----------
    hook
        The webhook.
    subject
        The write, in the version in which the webhook is called.
    called
        The resource in that version.
    kind
        Prefix of the audit annotations about webhooks of its kind.
    round
        0, or 1 where the webhook looks at the object once more.
    """

    hook: Hook
    subject: Subject
    called: Served
    kind: str
    round: int

    @property
    def place(self) -> str:
        """The key of the audit annotation about the call."""
        return f"{self.kind}/round_{self.round}_index_{self.hook.index}"

    @property
    def about(self) -> str:
        """The webhook and the object, as one text."""
        write, subject = self.subject.write, self.subject
        return (
            f"{self.kind} {self.round} {self.hook.identity} {write.operation} "
            f"{write.resource.qualified}/{write.subresource} {subject.namespace}/"
            f"{text(write.obj, 'metadata', 'name')}"
        )


def _as_called(subject: Subject, served: Served, called: Served) -> Subject:
    """Return a write with its objects in the version in which a webhook is called."""
    if called is served or subject.has_body:
        return subject
    write = subject.write
    new, old = (_converted(each, served, called) for each in (write.new, write.old))
    return msgspec.structs.replace(subject, write=msgspec.structs.replace(write, new=new, old=old))


def _converted(obj: Obj | None, served: Served, wanted: Served) -> Obj | None:
    """Return an object in another version of its resource."""
    if obj is None or served is wanted:
        return obj
    return wanted.from_stored(served.to_stored(copy.deepcopy(obj)))


def _conditions_hold(
    hook: Hook, subject: Subject, called: ResourceType, authorize: Authorize
) -> bool | Failed:
    if not is_installed():
        return Failed("its match conditions cannot be evaluated: this server has no CEL")
    if absent := missing(hook.conditions):
        why = absent[0].removeprefix("spec.")
        return Failed(f"its match conditions cannot be evaluated: {why}")
    write = subject.write
    request = review_of(subject, called, "v1")["request"]
    values = {
        "object": write.new,
        "oldObject": write.old,
        "request": {k: v for k, v in request.items() if k not in ("object", "oldObject")},
        **authorizer_values(request),
    }
    result: bool | Failed | None = evaluate_with_rights(authorize, applies, hook.conditions, values)
    return Failed(USED_UP) if result is None else result
