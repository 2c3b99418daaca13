"""Condensers: what a View forgets, when, and what stands in its place. Pure: see ``base``."""

from runtime.history.condensers.base import (
    Ask,
    Condenser,
    Forget,
    GiveUp,
    Keep,
    Outcome,
    Situation,
    Trigger,
)
from runtime.history.condensers.extract import extract
from runtime.history.condensers.extract_summary import ExtractSummary
from runtime.history.condensers.hard_reset import HardReset
from runtime.history.condensers.llm_summary import LLMSummary, fault_of, instruction_of
from runtime.history.condensers.none import NoCondenser
from runtime.history.condensers.pipeline import Pipeline
from runtime.history.condensers.plan import Limits, LoopGuard, plan, triggers_of
from runtime.history.condensers.request import SummaryForm, SummaryReply, SummaryRequest
from runtime.history.condensers.rolling import RollingWindow
from runtime.history.condensers.window_errors import is_window_error

__all__ = [
    "Ask",
    "Condenser",
    "ExtractSummary",
    "Forget",
    "GiveUp",
    "HardReset",
    "Keep",
    "LLMSummary",
    "Limits",
    "LoopGuard",
    "NoCondenser",
    "Outcome",
    "Pipeline",
    "RollingWindow",
    "Situation",
    "SummaryForm",
    "SummaryReply",
    "SummaryRequest",
    "Trigger",
    "extract",
    "fault_of",
    "instruction_of",
    "is_window_error",
    "plan",
    "triggers_of",
]
